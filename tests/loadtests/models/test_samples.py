"""Variance, coefficient of variation and quantiles, against Python's own statistics."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models.sample_statistics import cv_of, quantile, variance_of

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


@given(VALUES)
def test_the_variance_is_that_of_the_standard_library(values: list[float]) -> None:
    assert variance_of(values) == pytest.approx(statistics.variance(values), rel=1e-9, abs=1e-9)


def test_the_cv_is_the_deviation_over_the_mean() -> None:
    assert cv_of([1.0, 3.0]) == pytest.approx(2**0.5 / 2)


@given(VALUES, st.floats(0.001, 1))
def test_a_quantile_is_the_least_value_that_enough_values_do_not_exceed(
    values: list[float], p: float
) -> None:
    least = quantile(values, p)
    assert least in values
    assert sum(value <= least for value in values) >= p * len(values)
    assert sum(value < least for value in values) < p * len(values)


def test_what_has_no_such_number_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two values"):
        variance_of([1.0])
    with pytest.raises(ValueError, match="0 < p ≤ 1"):
        quantile([1.0], 0.0)
