"""The universal scalability law: X(N) = λN/(1 + σ(N−1) + κN(N−1)).

λ is the throughput of one customer (1/s), σ the contention (the share of work that must be done one
at a time), κ the coherency (the cost of agreement between each two). With κ > 0 the throughput has
a peak, at the knee N* = √((1−σ)/κ). Source: N. J. Gunther, Guerrilla Capacity Planning (2007),
chapters 4-6.

The law is fitted to measured throughputs by least squares, in Gauss-Newton steps, which are halved
until they are no longer too far. It is N/X = a + b(N−1) + cN(N−1) with a = 1/λ, b = σ/λ, c = κ/λ,
so each step is a linear fit. σ and κ must not be negative: if they would be in the best fit, the
best fit with either or both at 0 is taken.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

from loadtests.models.domain import count, not_negative, positive
from loadtests.models.estimates import CONFIDENCE
from loadtests.models.linear import least_squares
from loadtests.models.sample_statistics import summary

Measurements = Mapping[int, Sequence[float]]  # N -> throughputs (1/s), one for each repetition
_Points = list[tuple[int, float, int]]  # N, mean throughput, number of measurements
_COLUMNS = ((0, 1, 2), (0, 2), (0, 1), (0,))  # which of a, b, c are free in each attempt
_MOST_STEPS = 200
_LEAST_STEP = 1e-9  # the share of a step below which halving it has no sense
_LEAST_SHARE = 1e-3  # of a mean, to which noise may lower it: throughputs are positive
_ENOUGH = 1e-10  # the fit ends with a step that changes no value by more than this share


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
    """The law with the least Σ (measured − X(N))² over all measurements, of three N at least."""
    return _fit(_points(measurements))


def knee_interval(
    measurements: Measurements, rng: Random, *, resamples: int = 1000
) -> KneeInterval:
    """The interval of the knee by a parametric bootstrap: a sample moves the mean at every N.

    Relative errors are taken as normal and equally large at every N, so their variance is known
    from all repetitions together; it is drawn anew for each sample, as few repetitions know it
    badly (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 6; the
    factor is that of Student's t). To draw from the two to four repetitions of each N themselves
    would lack a third of their variance, and covers 75 to 88 % and not 95 %. An end is infinite if
    enough samples have no peak.
    """
    count("resamples", resamples)
    points = _points(measurements)
    found = [summary(xs) for xs in measurements.values()]
    freedom = sum(one.count - 1 for one in found)
    if freedom < 1:
        raise ValueError("every N was measured once; an interval needs repetitions")
    deviation = math.sqrt(math.fsum(one.squares / one.mean**2 for one in found) / freedom)

    def moved() -> _Points:
        uncertain = deviation * math.sqrt(freedom / (2 * rng.gammavariate(freedom / 2, 1)))
        return [
            (n, x * max(_LEAST_SHARE, 1 + uncertain * rng.gauss(0, 1) / math.sqrt(weight)), weight)
            for n, x, weight in points
        ]

    knees = sorted(_fit(moved()).knee for _ in range(resamples))
    outside = int((1 - CONFIDENCE) / 2 * resamples)
    return KneeInterval(knees[outside], knees[-1 - outside])


@dataclass(frozen=True)
class Scaling:
    """What measured throughputs tell of the law: None where they are too few."""

    measurements: Measurements
    least: int  # of different N, without which there is no law
    rng: Random  # of the interval's bootstrap
    resamples: int = 1000

    @cached_property
    def law(self) -> ScalabilityLaw | None:
        """The law that fits best."""
        return fit(self.measurements) if len(self.measurements) >= self.least else None

    @cached_property
    def knee(self) -> KneeInterval | None:
        """The interval of its knee, if every N was measured twice."""
        if self.law is None or min(map(len, self.measurements.values())) < 2:
            return None
        return knee_interval(self.measurements, self.rng, resamples=self.resamples)


def _points(measurements: Measurements) -> _Points:
    """The mean and count at each N suffice for a fit: Σ (x − X)² = k·(mean − X)² + a constant."""
    for n, throughputs in measurements.items():
        for x in throughputs:
            positive(f"the throughput at N = {n}", x)
    if len(measurements) < 3:
        raise ValueError(f"three unknowns need three different N, there are {len(measurements)}")
    return [(count("N", n), summary(found).mean, len(found)) for n, found in measurements.items()]


def _fit(points: _Points) -> ScalabilityLaw:
    """The best fit with b ≥ 0 and c ≥ 0, of those with both, one or none of b and c free."""
    fits = []
    for free in _COLUMNS:
        error, abc = _fitted(points, free)
        if min(abc) >= 0:
            fits.append((error, abc))
            if len(free) == 3:
                break  # no value had to be set to 0
    _, (a, b, c) = min(fits)
    return ScalabilityLaw(1 / a, b / a, c / a)


def _fitted(points: _Points, free: Sequence[int]) -> tuple[float, list[float]]:
    """The error of the best fit, and its a, b and c."""
    abc = _aim(points, [n / x for n, x, _ in points], free)
    if _error(points, abc) == math.inf:  # then it begins with a constant throughput per customer
        abc = [points[0][0] / points[0][1], 0.0, 0.0]
    error = _error(points, abc)
    for _ in range(_MOST_STEPS):
        aim, share, found = _aim(points, _divisors(points, abc), free), 1.0, math.inf
        if all(math.isclose(v, to, rel_tol=_ENOUGH) for v, to in zip(abc, aim, strict=True)):
            break
        while found >= error and share > _LEAST_STEP:
            moved = [v + share * (to - v) for v, to in zip(abc, aim, strict=True)]
            found, share = _error(points, moved), share / 2
        if found >= error:
            break
        abc, error = moved, found
    return error, abc


def _divisors(points: _Points, abc: Sequence[float]) -> list[float]:
    """N/X(N) = a + b(N−1) + cN(N−1) of each point."""
    a, b, c = abc
    return [a + b * (n - 1) + c * n * (n - 1) for n, _, _ in points]


def _error(points: _Points, abc: Sequence[float]) -> float:
    """Σ (measured − X(N))²; infinite where the law would have a pole or a negative throughput."""
    divisors = _divisors(points, abc)
    if min(abc[0], *divisors) <= 0:
        return math.inf
    pairs = zip(points, divisors, strict=True)
    return math.fsum(weight * (x - n / divisor) ** 2 for (n, x, weight), divisor in pairs)


def _aim(points: _Points, divisors: Sequence[float], free: Sequence[int]) -> list[float]:
    """The a, b and c that fit best if X changes with N/X as it does at `divisors`.

    Near a divisor d is X = N/d' ≈ 2N/d − d'·N/d², which is linear in them.
    """
    rows, values = [], []
    for (n, x, weight), divisor in zip(points, divisors, strict=True):
        slope = math.sqrt(weight) * n / divisor**2
        terms = slope, slope * (n - 1), slope * n * (n - 1)
        rows.append([terms[at] for at in free])
        values.append(2 * slope * divisor - math.sqrt(weight) * x)
    abc = [0.0, 0.0, 0.0]
    for at, value in zip(free, least_squares(rows, values), strict=True):
        abc[at] = value
    return abc
