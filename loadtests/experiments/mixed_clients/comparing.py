"""Throughput and response time of N customers, held against what a closed system can do.

Without think time (Z = 0) the asymptotic bounds are X ≤ min(N/D, 1/D_b) and R ≥ max(D, N·D_b):
D is the response time of one customer; D_b the demand at the bottleneck, for which the processors
are taken: the processor time of an interaction, that of the service and of the generator that
shares the machine, over the number of cores. Locks, the interpreter's among them, and the disk can
only lower the throughput further; how far the measurement stays below 1/D_b is their share.

Beyond the knee a line R = a + b·N and an exponential R = a·e^(b·N) are fitted to the same points:
in a closed system the line must fit better, and its slope is the time between two customers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp, log, sqrt
from random import Random
from statistics import fmean, linear_regression

from loadtests.experiments.mixed_clients.reading import MixedRun
from loadtests.models import scalability
from loadtests.models.estimates import Interval, confidence_interval
from loadtests.models.scalability import KneeInterval, ScalabilityLaw

SATURATED_SHARE = 0.9  # of the highest throughput: from there on the latency is looked at
LEAST_POINTS, LEAST_SATURATED = 3, 4


@dataclass(frozen=True, slots=True)
class Point:
    """N customers at a place and ledger: means over runs. runs: those that count, of `made`.

    If none was accepted, is_sound is false and the means are of all: they are shown, and used for
    nothing.
    """

    customers: int
    runs: int
    made: int
    is_sound: bool
    throughputs_per_s: tuple[float, ...]
    responses_s: tuple[float, ...]
    service_demand_s: float
    generator_demand_s: float | None

    @property
    def throughput_per_s(self) -> float:
        """X."""
        return fmean(self.throughputs_per_s)

    @property
    def response_s(self) -> float:
        """R."""
        return fmean(self.responses_s)

    @property
    def throughput_interval(self) -> Interval | None:
        """The 95 % interval of X over runs; None from one run."""
        return _interval(self.throughputs_per_s)

    @property
    def response_interval(self) -> Interval | None:
        """The 95 % interval of R over runs; None from one run."""
        return _interval(self.responses_s)


def _interval(values: Sequence[float]) -> Interval | None:
    return confidence_interval(values) if len(values) > 1 else None


@dataclass(frozen=True, slots=True)
class Growth:
    """How R grows with N beyond the knee. errors: root mean squares relative to R.

    slope_s: of the line, the time that a further customer adds. first: the least N looked at.
    """

    first: int
    points: int
    slope_s: float
    line_error: float
    exponential_error: float

    @property
    def is_linear(self) -> bool:
        """Whether a line fits better than an exponential."""
        return self.line_error < self.exponential_error


@dataclass(frozen=True, slots=True)
class Curve:
    """All numbers of customers at one place and ledger that were accepted, at least one.

    demand_s: D, the response time of one customer; None if that was rejected.
    gap_s: D_b. law: None with fewer than three points. knee: None as well without repetitions.
    """

    place: str
    blocks: int
    points: tuple[Point, ...]
    demand_s: float | None
    gap_s: float
    growth: Growth | None
    law: ScalabilityLaw | None
    knee: KneeInterval | None

    @property
    def best(self) -> Point:
        """Where the throughput is highest."""
        return max(self.points, key=lambda point: point.throughput_per_s)

    @property
    def crossing(self) -> float | None:
        """N_opt = D/D_b, where the asymptotes meet; None without D."""
        return None if self.demand_s is None else self.demand_s / self.gap_s

    def most_per_s(self, customers: float) -> float:
        """The upper bound of X; that of the bottleneck alone without D."""
        return min(customers / (self.demand_s or customers * self.gap_s), 1 / self.gap_s)

    def least_s(self, customers: float) -> float:
        """The lower bound of R; that of the bottleneck alone without D."""
        return max(self.demand_s or 0.0, customers * self.gap_s)


def curves(runs: Sequence[MixedRun], cores: int, seed: int) -> list[Curve]:
    """A curve for each place and ledger with an accepted point, ledgers first."""
    found = []
    for (blocks, place), of_both in groupby(points_of(runs), key=lambda one: one[:2]):
        sound = tuple(point for _, _, point in of_both if point.is_sound)
        if sound:
            found.append(_curve(place, blocks, sound, cores, seed))
    return found


def points_of(runs: Sequence[MixedRun]) -> list[tuple[int, str, Point]]:
    """Blocks, place and point of all that was measured, accepted or not."""

    def key(run: MixedRun) -> tuple[int, str, int]:
        return run.blocks, run.place, run.customers

    groups = groupby(sorted(runs, key=key), key=key)
    return [(blocks, place, _point(list(of))) for (blocks, place, _), of in groups]


def _curve(place: str, blocks: int, points: tuple[Point, ...], cores: int, seed: int) -> Curve:
    first, last = points[0], points[-1]
    told = [point.generator_demand_s for point in points if point.generator_demand_s is not None]
    generator_s = told[-1] if told else 0.0
    measurements = {point.customers: point.throughputs_per_s for point in points}
    has_law = len(points) >= LEAST_POINTS
    is_repeated = all(len(found) > 1 for found in measurements.values())
    random = Random(f"{seed} knee {place} {blocks}")  # noqa: S311  no secrets
    return Curve(
        place=place,
        blocks=blocks,
        points=points,
        demand_s=first.response_s if first.customers == 1 else None,
        gap_s=(last.service_demand_s + generator_s) / cores,
        growth=growth(points),
        law=scalability.fit(measurements) if has_law else None,
        knee=scalability.knee_interval(measurements, random) if has_law and is_repeated else None,
    )


def _point(made: Sequence[MixedRun]) -> Point:
    accepted = [run for run in made if run.is_accepted]
    runs = accepted or made
    told = [run.generator_demand_s for run in runs if run.generator_demand_s is not None]
    return Point(
        customers=made[0].customers,
        runs=len(accepted),
        made=len(made),
        is_sound=bool(accepted),
        throughputs_per_s=tuple(run.window.throughput_per_s for run in runs),
        responses_s=tuple(run.window.mean_response_s for run in runs),
        service_demand_s=fmean(run.service_demand_s for run in runs),
        generator_demand_s=fmean(told) if told else None,
    )


def growth(points: Sequence[Point]) -> Growth | None:
    """The growth of R over the points from the first that is saturated on; None for too few."""
    highest = max(point.throughput_per_s for point in points)
    saturated = [
        at for at, point in enumerate(points) if point.throughput_per_s >= SATURATED_SHARE * highest
    ]
    beyond = points[saturated[0] :]
    if len(beyond) < LEAST_SATURATED:
        return None
    ns = [float(point.customers) for point in beyond]
    responses_s = [point.response_s for point in beyond]
    line = linear_regression(ns, responses_s)
    logs = linear_regression(ns, [log(value) for value in responses_s])
    return Growth(
        first=beyond[0].customers,
        points=len(beyond),
        slope_s=line.slope,
        line_error=_error(ns, responses_s, lambda n: line.intercept + line.slope * n),
        exponential_error=_error(ns, responses_s, lambda n: exp(logs.intercept + logs.slope * n)),
    )


def _error(ns: Sequence[float], values: Sequence[float], fitted: Callable[[float], float]) -> float:
    """Root mean square of (fitted − measured)/measured."""
    shares = [(fitted(n) - value) / value for n, value in zip(ns, values, strict=True)]
    return sqrt(fmean(share * share for share in shares))
