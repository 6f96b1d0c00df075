"""The means of seven days, against a plain loop over the days."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.backend_client import Json
from frontend.questions.delays import LEAST_DAYS_FOR_WEEKS, week_means

CELLS = st.dictionaries(
    st.integers(0, 40),
    st.builds(
        lambda arrived, delay: {"arrived": arrived, "average_delay": delay if arrived else None},
        st.integers(0, 3),
        st.integers(-60, 600),
    ),
)


@given(CELLS, st.integers(LEAST_DAYS_FOR_WEEKS, 41))
def test_a_mean_is_of_three_days_before_to_three_after(cells: dict[int, Json], count: int) -> None:
    found = week_means(cells, count)
    for day in range(count):
        around = [cells[other] for other in range(day - 3, day + 4) if other in cells]
        arrived = sum(cell["arrived"] for cell in around)
        if 3 <= day < count - 3 and arrived:
            total = sum(cell["arrived"] * (cell["average_delay"] or 0) for cell in around)
            assert found[day] == pytest.approx(total / arrived)
        else:
            assert day not in found


@given(CELLS, st.integers(0, LEAST_DAYS_FOR_WEEKS - 1))
def test_fewer_than_two_weeks_have_no_weekly_means(cells: dict[int, Json], count: int) -> None:
    assert week_means(cells, count) == {}
