"""The universal scalability law: X(N) = λN/(1 + σ(N−1) + κN(N−1)).

λ is the throughput of one customer (1/s), σ the contention (the share of work that must be done one
at a time), κ the coherency (the cost of agreement between each two). With κ > 0 the throughput has
a peak, at the knee N* = √((1−σ)/κ). Source: N. J. Gunther, Guerrilla Capacity Planning (2007),
chapters 4-6.

The law is fitted by least squares to N/X = a + b(N−1) + cN(N−1) with a = 1/λ, b = σ/λ, c = κ/λ. An
error of X is one of N/X that is X²/N times as small, so each N has that weight. σ and κ must not be
negative: if they would be in the best fit, the best fit with either or both at 0 is taken.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadtests.models.domain import count, not_negative, positive
from loadtests.models.estimates import CONFIDENCE
from loadtests.models.sample_statistics import mean_of, summary

Measurements = Mapping[int, Sequence[float]]  # N -> throughputs (1/s), one for each repetition
Values = NDArray[np.float64]
Points = Values  # rows of N, mean throughputs, numbers of measurements
_COLUMNS = ((0, 1, 2), (0, 2), (0, 1), (0,))  # which of a, b, c are free in each attempt
_LEAST_SHARE = 1e-3  # of a mean, to which noise may lower it: throughputs are positive
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class ScalabilityLaw:
    """λ, σ and κ."""

    rate_per_s: float
    contention: float
    coherency: float

    def __post_init__(self) -> None:
        positive("rate_per_s", self.rate_per_s)
        not_negative("contention", self.contention)
        not_negative("coherency", self.coherency)

    def throughput_per_s(self, customers: float) -> float:
        """X(N) in 1/s, for N > 0."""
        n = positive("customers", customers)
        shared = self.contention * (n - 1) + self.coherency * n * (n - 1)
        return self.rate_per_s * n / (1 + shared)

    @property
    def knee(self) -> float:
        """N*, with the highest throughput: infinite for κ = 0, and 1 if one customer does best."""
        if self.coherency == 0:
            return math.inf if self.contention < 1 else 1.0
        return max(1.0, math.sqrt(max(0.0, 1 - self.contention) / self.coherency))


class KneeInterval(NamedTuple):
    """The 95 % interval of a law's knee."""

    low: float
    high: float


def fit(measurements: Measurements) -> ScalabilityLaw:
    """The law that fits measurements at three N at least."""
    return _fit(_points(measurements))


def knee_interval(measurements: Measurements, rng: Random) -> KneeInterval:
    """The interval of the knee by a parametric bootstrap: a sample moves the mean at every N.

    Relative errors are taken as normal and equally large at every N, so their variance is known
    from all repetitions together; it is drawn anew for each sample, as few repetitions know it
    badly (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 6; the
    factor is that of Student's t). To draw from the two to four repetitions of each N themselves
    would lack a third of their variance, and covers 75 to 88 % and not 95 %. An end is infinite if
    enough samples have no peak.
    """
    n, x, weight = _points(measurements)
    found = [summary(xs) for xs in measurements.values()]
    freedom = sum(one.count - 1 for one in found)
    if freedom < 1:
        raise ValueError("every N was measured once; an interval needs repetitions")
    deviation = math.sqrt(math.fsum(one.squares / one.mean**2 for one in found) / freedom)

    def moved() -> Points:
        uncertain = deviation * math.sqrt(freedom / (2 * rng.gammavariate(freedom / 2, 1)))
        chance = np.array([rng.gauss(0, 1) for _ in n]) / np.sqrt(weight)
        return np.stack([n, x * np.maximum(_LEAST_SHARE, 1 + uncertain * chance), weight])

    knees = sorted(_fit(moved()).knee for _ in range(_RESAMPLES))
    outside = int((1 - CONFIDENCE) / 2 * _RESAMPLES)
    return KneeInterval(knees[outside], knees[-1 - outside])


def _points(measurements: Measurements) -> Points:
    """The mean and count at each N, which suffice for a fit."""
    for n, throughputs in measurements.items():
        for x in throughputs:
            positive(f"the throughput at N = {n}", x)
    if len(measurements) < 3:
        raise ValueError(f"three unknowns need three different N, there are {len(measurements)}")
    rows = [(count("N", n), mean_of(xs), len(xs)) for n, xs in measurements.items()]
    return np.array(rows, dtype=float).T


def _fit(points: Points) -> ScalabilityLaw:
    """The best fit with b ≥ 0 and c ≥ 0, of those with both, one or none of b and c free."""
    n, x, count_of_each = points
    weights = np.sqrt(count_of_each) * x**2 / n
    terms = np.stack([np.ones_like(n), n - 1, n * (n - 1)])
    fits = []
    for free in _COLUMNS:
        abc = np.zeros(3)
        abc[[*free]] = np.linalg.lstsq((weights * terms[[*free]]).T, weights * n / x)[0]
        if abc.min() >= 0 and abc[0] > 0:
            error = float(np.sum((weights * (abc @ terms - n / x)) ** 2))
            fits.append((error, [float(value) for value in abc]))
            if len(free) == 3:
                break  # no value had to be set to 0
    _, (a, b, c) = min(fits)
    return ScalabilityLaw(1 / a, b / a, c / a)
