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

import numpy as np
from numpy.typing import NDArray

from loadtests.models.domain import count, not_negative, positive
from loadtests.models.estimates import CONFIDENCE
from loadtests.models.sample_statistics import mean_of, summary

Measurements = Mapping[int, Sequence[float]]  # N -> throughputs (1/s), one for each repetition
Values = NDArray[np.float64]
Points = Values  # rows of N, mean throughputs, numbers of measurements
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


def _points(measurements: Measurements) -> Points:
    """The mean and count at each N suffice for a fit: Σ (x − X)² = k·(mean − X)² + a constant."""
    for n, throughputs in measurements.items():
        for x in throughputs:
            positive(f"the throughput at N = {n}", x)
    if len(measurements) < 3:
        raise ValueError(f"three unknowns need three different N, there are {len(measurements)}")
    rows = [(count("N", n), mean_of(xs), len(xs)) for n, xs in measurements.items()]
    return np.array(rows, dtype=float).T


def _fit(points: Points) -> ScalabilityLaw:
    """The best fit with b ≥ 0 and c ≥ 0, of those with both, one or none of b and c free."""
    fits = []
    for free in _COLUMNS:
        error, abc = _fitted(points, list(free))
        if min(abc) >= 0:
            fits.append((error, abc))
            if len(free) == 3:
                break  # no value had to be set to 0
    _, (a, b, c) = min(fits)
    return ScalabilityLaw(1 / a, b / a, c / a)


def _fitted(points: Points, free: Sequence[int]) -> tuple[float, list[float]]:
    """The error of the best fit, and its a, b and c.

    Near a divisor d = N/X is X = N/d' ≈ 2N/d − d'·N/d², which is linear in a, b and c.
    """
    n, x, weight = points
    terms = np.stack([np.ones_like(n), n - 1, n * (n - 1)])[free]

    def error_of(found: Values) -> float:
        divisors = found @ terms  # a law with a pole or a negative throughput is none
        is_law = found[0] > 0 and divisors.min() > 0
        return float(np.sum(weight * (x - n / divisors) ** 2)) if is_law else math.inf

    def aim(divisors: Values) -> Values:
        slopes = np.sqrt(weight) * n / divisors**2
        values = 2 * slopes * divisors - np.sqrt(weight) * x
        return np.asarray(np.linalg.lstsq((slopes * terms).T, values)[0], dtype=float)

    found = aim(n / x)
    if error_of(found) == math.inf:  # then it begins with a constant throughput per customer
        found = np.array([n[0] / x[0], *[0.0] * (len(free) - 1)])
    error = error_of(found)
    for _ in range(_MOST_STEPS):
        target, share = aim(found @ terms), 1.0
        if np.allclose(found, target, rtol=_ENOUGH, atol=0.0):
            break
        while error_of(moved := found + share * (target - found)) >= error and share > _LEAST_STEP:
            share /= 2
        if error_of(moved) >= error:
            break
        found, error = moved, error_of(moved)
    abc = np.zeros(3)
    abc[free] = found
    return error, [float(value) for value in abc]
