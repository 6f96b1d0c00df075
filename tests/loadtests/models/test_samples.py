"""Mean, variance, coefficient of variation and quantiles, against Python's own statistics."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models.sample_statistics import quantile, summary

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


@given(VALUES)
def test_mean_and_variance_are_those_of_the_standard_library(values: list[float]) -> None:
    sample = summary(values)
    assert sample.mean == pytest.approx(statistics.fmean(values), rel=1e-12, abs=1e-9)
    assert sample.variance == pytest.approx(statistics.variance(values), rel=1e-9, abs=1e-9)
    assert sample.count == len(values)


def test_the_cv_is_the_deviation_over_the_mean() -> None:
    assert summary([1.0, 3.0]).cv == pytest.approx(2**0.5 / 2)


@given(VALUES, st.floats(0.001, 1))
def test_a_quantile_is_the_least_value_that_enough_values_do_not_exceed(
    values: list[float], p: float
) -> None:
    least = quantile(values, p)
    assert least in values
    assert sum(value <= least for value in values) >= p * len(values)
    assert sum(value < least for value in values) < p * len(values)


def test_what_has_no_summary_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        summary([])
    with pytest.raises(ValueError, match="values must be finite, but one is nan"):
        summary([1.0, float("nan")])
    with pytest.raises(ValueError, match="at least two values"):
        _ = summary([1.0]).variance
    with pytest.raises(ValueError, match="mean of 0"):
        _ = summary([-1.0, 1.0]).cv
    with pytest.raises(ValueError, match="0 < p ≤ 1"):
        quantile([1.0], 0.0)
