"""Least squares, against exact data, the mean, and the property that defines it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models.linear import least_squares

VALUES = st.lists(st.floats(-100, 100), min_size=4, max_size=12)


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_a_straight_line_is_found_again(base: float, slope: float) -> None:
    rows = [(1.0, float(x)) for x in range(6)]
    found = least_squares(rows, [base + slope * x for _, x in rows])
    assert found == pytest.approx([base, slope], abs=1e-9)


@given(VALUES)
def test_with_a_constant_alone_it_is_the_mean(values: list[float]) -> None:
    assert least_squares([(1.0,)] * len(values), values) == pytest.approx(
        [sum(values) / len(values)], abs=1e-9
    )


@given(VALUES)
def test_what_is_left_over_has_no_part_along_any_column(values: list[float]) -> None:
    rows = [(1.0, float(place), float(place % 3)) for place in range(len(values))]
    found = least_squares(rows, values)
    left = [
        v - sum(b * x for b, x in zip(found, row, strict=True))
        for v, row in zip(values, rows, strict=True)
    ]
    for column in zip(*rows, strict=True):
        assert sum(a * b for a, b in zip(column, left, strict=True)) == pytest.approx(0, abs=1e-6)


def test_columns_that_depend_on_each_other_and_unequal_lists_are_refused() -> None:
    with pytest.raises(ValueError, match="no single solution"):
        least_squares([(1.0, 2.0), (1.0, 2.0), (1.0, 2.0)], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="there are 1 rows and 2 values"):
        least_squares([(1.0,)], [1.0, 2.0])
