"""Computes variance, coefficient of variation and quantiles of measured values."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean


def variance_of(values: Sequence[float]) -> float:
    """Return the unbiased variance of two values or more, much sooner than `statistics` does."""
    if len(values) < 2:
        raise ValueError(f"a variance needs at least two values, there are {len(values)}")
    mean = fmean(values)
    return math.fsum([(value - mean) ** 2 for value in values]) / (len(values) - 1)


def cv_of(values: Sequence[float]) -> float:
    """Return the coefficient of variation: the standard deviation over the mean."""
    return math.sqrt(variance_of(values)) / fmean(values)


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def quantile(values: Sequence[float], p: float) -> float:
    """Return the smallest value that at least the share `p` of the values does not exceed.

    There is no interpolation, so it is always one of the values. 0 < p ≤ 1.
    """
    if not values or not 0 < p <= 1:
        raise ValueError(f"a quantile needs values and 0 < p ≤ 1, has {len(values)} and p = {p}")
    return sorted(values)[math.ceil(p * len(values)) - 1]
