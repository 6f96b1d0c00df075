"""The means of seven days, against a plain loop over the days."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.questions.delays import LEAST_DAYS_FOR_WEEKS, Cell, week_means

CELLS = st.dictionaries(
    st.integers(0, 40),
    st.builds(
        lambda arrived, delay: Cell(arrived + 1, arrived, 1, 0, 0, arrived * delay),
        st.integers(0, 3),
        st.integers(-60, 600),
    ),
)


@given(CELLS, st.integers(LEAST_DAYS_FOR_WEEKS, 41))
def test_a_mean_is_of_three_days_before_to_three_after(cells: dict[int, Cell], count: int) -> None:
    found = week_means(cells, count)
    for day in range(count):
        around = [cells[other] for other in range(day - 3, day + 4) if other in cells]
        arrived = sum(cell.arrived for cell in around)
        if 3 <= day < count - 3 and arrived:
            assert found[day] == pytest.approx(sum(cell.delays for cell in around) / arrived)
        else:
            assert day not in found


@given(CELLS, st.integers(0, LEAST_DAYS_FOR_WEEKS - 1))
def test_fewer_than_two_weeks_have_no_weekly_means(cells: dict[int, Cell], count: int) -> None:
    assert week_means(cells, count) == {}
