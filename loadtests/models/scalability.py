"""The universal scalability law: X(N) = λN/(1 + σ(N−1) + κN(N−1)).

λ is the throughput of one customer (1/s), σ the contention (the share of work that must be done one
at a time), κ the coherency (the cost of agreement between each two). With κ > 0 the throughput has
a peak, at the knee N* = √((1−σ)/κ). Source: N. J. Gunther, Guerrilla Capacity Planning (2007),
chapters 4-6.

The law is fitted to measured throughputs by least squares. As N/X = a + b(N−1) + cN(N−1) with
a = 1/λ, b = σ/λ, c = κ/λ, the fit starts with a linear one. Gauss-Newton steps with J. Marquardt's
damping (1963) follow, on the throughputs themselves. σ and κ must not be negative: if they would be
in the best fit, the best fit with either or both at 0 is taken.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from loadtests.models.domain import count, not_negative, positive
from loadtests.models.estimates import CONFIDENCE
from loadtests.models.linear import least_squares
from loadtests.models.samples import summary

Measurements = Mapping[int, Sequence[float]]
"""Number of customers N -> throughputs (1/s), one for each repetition of the measurement."""

_Points = list[tuple[int, float, int]]  # N, mean throughput, number of measurements
_COLUMNS = ((0, 1, 2), (0, 2), (0, 1), (0,))  # which of a, b, c are free in each attempt
_MOST_STEPS = 200
_MOST_DAMPING = 1e3
_LEAST_SHARE = 1e-3  # of a mean, to which noise may lower it: throughputs are positive
_ENOUGH = 1e-10  # the fit ends with a step that changes no value by more than this share


@dataclass(frozen=True, slots=True)
class ScalabilityLaw:
    """λ, σ and κ. Raises ValueError unless λ is positive and the others are not negative."""

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
    """The law with the least Σ (measured − X(N))² over all measurements.

    Raises ValueError for fewer than three different N, an N below 1, or a throughput that is not
    positive.
    """
    return _fit(_points(measurements))


def knee_interval(
    measurements: Measurements, rng: Random, *, resamples: int = 1000
) -> KneeInterval:
    """The interval of the knee by a parametric bootstrap: a sample moves the mean at every N.

    Relative errors are taken as normal and equally large at every N, so their variance is known
    from all repetitions together; it is drawn anew for each sample, as few repetitions know it
    badly (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 6; the
    factor is that of Student's t). To draw from the two to four repetitions of each N themselves
    would lack a third of their variance, and covers 75 to 88 % and not 95 %.

    Raises ValueError as `fit` does, and if every N was measured only once, because then the
    variance is unknown. An end is infinite if enough samples have no peak.
    """
    count("resamples", resamples)
    points = _points(measurements)
    deviation, freedom = _relative_deviation(measurements)

    def moved() -> _Points:
        uncertain = deviation * math.sqrt(freedom / (2 * rng.gammavariate(freedom / 2, 1)))
        return [
            (n, x * max(_LEAST_SHARE, 1 + uncertain * rng.gauss(0, 1) / math.sqrt(weight)), weight)
            for n, x, weight in points
        ]

    knees = sorted(_fit(moved()).knee for _ in range(resamples))
    outside = int((1 - CONFIDENCE) / 2 * resamples)
    return KneeInterval(knees[outside], knees[-1 - outside])


def _relative_deviation(measurements: Measurements) -> tuple[float, int]:
    """The standard deviation of x/mean over all repetitions, and its degrees of freedom."""
    found = [summary(xs) for xs in measurements.values()]
    freedom = sum(one.count - 1 for one in found)
    if freedom < 1:
        raise ValueError("every N was measured once; an interval needs repetitions")
    return math.sqrt(math.fsum(one.squares / one.mean**2 for one in found) / freedom), freedom


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
    fits = [(error, abc) for error, abc in _candidates(points) if abc[1] >= 0 and abc[2] >= 0]
    _, (a, b, c) = min(fits)
    return ScalabilityLaw(1 / a, b / a, c / a)


def _candidates(points: _Points) -> Iterator[tuple[float, list[float]]]:
    for free in _COLUMNS:
        abc = _refined(points, _start(points, free), free)
        yield _error(points, abc), abc
        if len(free) == 3 and min(abc) >= 0:
            return  # no value had to be set to 0


def _terms(n: int) -> tuple[float, float, float]:
    return 1.0, n - 1.0, n * (n - 1.0)


def _divisor(n: int, abc: Sequence[float]) -> float:
    """N/X(N) = a + b(N−1) + cN(N−1)."""
    return sum(factor * term for factor, term in zip(abc, _terms(n), strict=True))


def _error(points: _Points, abc: Sequence[float]) -> float:
    """Σ (measured − X(N))²; infinite where the law would have a pole or a negative throughput."""
    if abc[0] <= 0 or any(_divisor(n, abc) <= 0 for n, _, _ in points):
        return math.inf
    return math.fsum(weight * (x - n / _divisor(n, abc)) ** 2 for n, x, weight in points)


def _start(points: _Points, free: Sequence[int]) -> list[float]:
    """The linear fit of N/X, weighted by X²/N, as an error of X counts there.

    If that is outside the law's domain, the result has the constant throughput per customer of the
    first point.
    """
    roots = [math.sqrt(weight) * x for _, x, weight in points]
    rows = [
        [root * x / n * _terms(n)[at] for at in free]
        for root, (n, x, _) in zip(roots, points, strict=True)
    ]
    abc = _spread(least_squares(rows, roots), free)
    if _error(points, abc) < math.inf:
        return abc
    n, x, _ = points[0]
    return [n / x, 0.0, 0.0]


def _refined(points: _Points, abc: list[float], free: Sequence[int]) -> list[float]:
    """`abc` after Gauss-Newton steps, damped more whenever a step would not improve the fit."""
    error, damping = _error(points, abc), 1e-9
    for _ in range(_MOST_STEPS):
        step = _step(points, abc, free, damping)
        moved = [value + change for value, change in zip(abc, step, strict=True)]
        found = _error(points, moved)
        if found < error:
            abc, error, damping = moved, found, damping / 10
        else:
            damping *= 100
        is_small = all(abs(s) <= _ENOUGH * abs(v) for s, v in zip(step, abc, strict=True))
        if is_small or damping > _MOST_DAMPING:
            break
    return abc


def _step(
    points: _Points, abc: Sequence[float], free: Sequence[int], damping: float
) -> list[float]:
    """The changes of a, b and c that the slopes of X at the points suggest."""
    rows, missed = [], []
    for n, x, weight in points:
        root, divisor = math.sqrt(weight), _divisor(n, abc)
        rows.append([-root * n / divisor**2 * _terms(n)[at] for at in free])
        missed.append(root * (x - n / divisor))
    return _spread(least_squares(rows, missed, damping), free)


def _spread(values: Sequence[float], free: Sequence[int]) -> list[float]:
    """a, b and c: `values` for the free ones, and 0 for the others."""
    abc = [0.0, 0.0, 0.0]
    for at, value in zip(free, values, strict=True):
        abc[at] = value
    return abc
