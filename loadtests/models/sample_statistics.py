"""Computes mean, variance, coefficient of variation and quantiles of measured values."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums up `count` values: their mean and squares = Σ (value − mean)²."""

    count: int
    mean: float
    squares: float

    @property
    def variance(self) -> float:
        """Return the unbiased variance, squares/(count − 1). Raises ValueError for one value."""
        if self.count < 2:
            raise ValueError("a variance needs at least two values, there is one")
        return self.squares / (self.count - 1)

    @property
    def standard_deviation(self) -> float:
        """Return the root of the variance."""
        return math.sqrt(self.variance)

    @property
    def cv(self) -> float:
        """Return standard deviation over mean. Raises ValueError for a mean of 0."""
        if self.mean == 0:
            raise ValueError("values with a mean of 0 have no coefficient of variation")
        return self.standard_deviation / self.mean


def summary(values: Sequence[float]) -> Summary:
    """Return the summary of `values`. Raises ValueError if there are none or one is not finite."""
    mean = mean_of(values)
    squares = math.fsum([(value - mean) ** 2 for value in values])
    return Summary(len(values), mean, squares)


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of `values`. Raises ValueError if there are none or one is not finite."""
    if not values:
        raise ValueError("a mean needs at least one value")
    if not all(map(math.isfinite, values)):
        unusable = next(value for value in values if not math.isfinite(value))
        raise ValueError(f"values must be finite, but one is {unusable}")
    return math.fsum(values) / len(values)


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
