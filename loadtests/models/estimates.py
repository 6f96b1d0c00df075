"""Computes confidence intervals, and the verdict on a model.

Response times that follow each other in a run are correlated, so an interval for independent values
would be far too narrow. There are two honest ways (A. M. Law, Simulation Modeling and Analysis,
2015, chapter 9): means of long batches of one run, or, better, means of independent runs
(replications). At a utilisation of 0.8 or more only replications count: intervals of batches cover
81 % of nominal 95 % at 0.85 with 2000 customers.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from statistics import NormalDist, fmean

from loadtests.models import student_t
from loadtests.models.domain import positive
from loadtests.models.sample_statistics import variance_of

CONFIDENCE = 0.95
BATCHES = 20
LEAST_VALUES = 5  # fewer decide nothing: nobody knows then whether values are about normal
REPLICATIONS = 10  # fewer do not support a claim about the steady state
WARM_UP_ARRIVALS = 200
WARM_UP_SHARE = 10  # one in this many arrivals belongs to the warm-up
TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Interval:
    """Holds a mean estimated from `values` independent values, plus or minus `half_width`.

    That is infinite if it is not known, as of a single value.
    """

    estimate: float
    half_width: float = math.inf
    values: int = 1

    @property
    def low(self) -> float:
        return self.estimate - self.half_width

    @property
    def high(self) -> float:
        return self.estimate + self.half_width

    @property
    def ends(self) -> tuple[float, float] | tuple[None, None]:
        """Return the lower and the upper end; None for both if it is infinitely wide."""
        return (self.low, self.high) if math.isfinite(self.half_width) else (None, None)

    @property
    def is_finding(self) -> bool:
        """Return whether a sentence may state it: its ends must exclude 0 and have 3 values.

        A single value has no ends; a report of single values says that it proves nothing.
        """
        return self.half_width == math.inf or (self.values > 2 and not self.covers(0))

    def covers(self, value: float) -> bool:
        """Return whether `value` lies in the interval, ends included."""
        return self.low <= value <= self.high

    def times(self, factor: float) -> "Interval":
        return replace(self, estimate=factor * self.estimate, half_width=factor * self.half_width)

    def plus(self, value: float) -> "Interval":
        return replace(self, estimate=self.estimate + value)


def confidence_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the interval (Student's t) of the mean of independent values, at least one."""
    if (count := len(values)) == 1:
        return Interval(values[0])
    error = math.sqrt(variance_of(values) / count)
    t = student_t.quantile((1 + confidence) / 2, count - 1)
    return Interval(fmean(values), t * error, count)


def clustered_interval(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = CONFIDENCE
) -> Interval:
    """Return the interval of the mean of values that are independent only between clusters.

    Each value has the same weight; with clusters of one size it is the interval of their means.
    Source: K.-Y. Liang and S. L. Zeger, Biometrika 73 (1986), with t for clusters − 1 degrees of
    freedom.
    """
    mean, sums = fmean(values), defaultdict[Hashable, list[float]](list)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster].append(value - mean)
    units = len(sums)
    squares = math.fsum(math.fsum(deviations) ** 2 for deviations in sums.values())
    error = math.sqrt(squares * units / (units - 1)) / len(values)
    t = student_t.quantile((1 + confidence) / 2, units - 1)
    return Interval(mean, t * error, units)


def batch_means(values: Sequence[float], batches: int = BATCHES) -> Interval:
    """Return the interval of the mean of a run, from the means of `batches` equal parts of it.

    The remainder of the division is left out at the beginning, where a run is least settled.
    """
    size, left_over = divmod(len(values), batches)
    ends = range(left_over, len(values) + 1, size)
    return confidence_interval([fmean(values[start:end]) for start, end in pairwise(ends)])


def mean_over_runs(runs: Sequence[Sequence[float]], batches: int = BATCHES) -> Interval:
    """Return the interval of the mean over runs, or from batches of a single run.

    Each run has the same weight. A single run of fewer values than `batches` has as many batches.
    """
    if len(runs) > 1:
        return confidence_interval([fmean(values) for values in runs])
    return batch_means(runs[0], min(batches, len(runs[0])))


def warm_up_of(arrivals: int, least: int = WARM_UP_ARRIVALS) -> int:
    """Return how many of the first arrivals of a run do not count: max(`least`, 10 %)."""
    return max(least, math.ceil(arrivals / WARM_UP_SHARE))


def wilson(held: float, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share: `held` of `total` (E. B. Wilson, 1927)."""
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    part, shrink = held / total, 1 + z * z / total
    middle = (part + z * z / (2 * total)) / shrink
    half = z * math.sqrt(part * (1 - part) / total + z * z / (4 * total * total)) / shrink
    return max(0.0, middle - half), min(1.0, middle + half)


class Verdict(StrEnum):
    """Names what a measurement says about a model."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    NOT_DECIDED = "not decided"


WORST_FIRST = (Verdict.DISAGREES, Verdict.NOT_DECIDED, Verdict.AGREES)


def verdict(difference: Interval, predicted: float, tolerance: float = TOLERANCE) -> Verdict:
    """Return what the interval of measured − predicted says about the model.

    It agrees if it lies wholly within ±tolerance·predicted, and disagrees if wholly outside. The
    tolerance is fixed before the run.
    """
    room = tolerance * positive("predicted", predicted)
    if -room <= difference.low and difference.high <= room:
        return Verdict.AGREES
    if difference.low > room or difference.high < -room:
        return Verdict.DISAGREES
    return Verdict.NOT_DECIDED
