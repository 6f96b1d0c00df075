"""Compares throughput and response time of N customers with the bounds of a closed system.

Without think time (Z = 0) the asymptotic bounds are X ≤ min(N/D, 1/D_b) and R ≥ max(D, N·D_b). D is
the response time of one customer. D_b is the demand at the bottleneck, assumed to be the
processors: the processor time of an interaction in the service and in the generator on the same
machine, divided by the number of cores. Locks (also the interpreter's) and the disk can only lower
the throughput further; they are the reason if the measurement stays below 1/D_b.

Beyond the knee a line R = a + b·N and an exponential R = a·e^(b·N) are fitted to the same points.
In a closed system the line must fit better, and its slope is the time between two customers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile
from math import exp, log, sqrt
from random import Random
from statistics import fmean, linear_regression

from loadtests.experiments.mixed_clients.reading import MixedRun
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, Repeated, accepted, that_count
from loadtests.models import scalability
from loadtests.models.samples import mean_of_known
from loadtests.models.scalability import KneeInterval, ScalabilityLaw

SATURATED_SHARE = 0.9  # saturation begins at this share of the highest throughput
LEAST_POINTS, LEAST_SATURATED = 3, 4


@dataclass(frozen=True)
class Point(Repeated[MixedRun]):
    """N customers at a place and ledger. Means of rejected runs are shown, but for no finding."""

    place: str
    blocks: int
    customers: int

    @cached_property
    def throughput(self) -> Estimate:
        """X over runs, in 1/s."""
        return self.over(lambda run: run.window.throughput_per_s)

    @cached_property
    def response(self) -> Estimate:
        """R over runs, in s."""
        return self.over(lambda run: run.window.mean_response_s)

    @property
    def service_demand_s(self) -> float:
        """The processor time of the service for an interaction."""
        return fmean(run.service_demand_s for run in self.runs)

    @property
    def generator_demand_s(self) -> float | None:
        """The processor time of the generator for an interaction.

        None if no run was long enough to measure it.
        """
        return mean_of_known(run.generator_demand_s for run in self.runs)


@dataclass(frozen=True, slots=True)
class Growth:
    """How R grows with N beyond the knee. first: lowest N there. points: number of points.

    slope_s: slope of the line, the time that each further customer adds. line_error,
    exponential_error: root mean square relative to R.
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
    """All accepted points at one place and ledger, at least one.

    demand_s: D, the response time of one customer; None if its runs were rejected. gap_s: D_b. law:
    None if there are fewer than three points. knee: None then, and if runs were not repeated.
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
        """The point with the highest throughput."""
        return max(self.points, key=lambda point: point.throughput.value)

    @property
    def crossing(self) -> float | None:
        """N_opt = D/D_b, where the asymptotes meet; None if D is unknown."""
        return None if self.demand_s is None else self.demand_s / self.gap_s

    def most_per_s(self, customers: float) -> float:
        """The upper bound of X, by the bottleneck alone if D is unknown."""
        return min(customers / (self.demand_s or customers * self.gap_s), 1 / self.gap_s)

    def least_s(self, customers: float) -> float:
        """The lower bound of R, by the bottleneck alone if D is unknown."""
        return max(self.demand_s or 0.0, customers * self.gap_s)


def curves(runs: Sequence[MixedRun], cores: int, seed: int) -> list[Curve]:
    """A curve for each ledger and place with an accepted point, ordered by ledger."""
    found = grouped(accepted(points_of(runs)), lambda point: (point.place, point.blocks))
    return [_curve(*key, tuple(points), cores, seed) for key, points in found.items()]


def points_of(runs: Sequence[MixedRun]) -> list[Point]:
    """All measurements, accepted or rejected, ordered by ledger and place."""
    cells = grouped(runs, lambda run: (run.blocks, run.place, run.customers))
    return [
        Point(that_count(of), len(of), place, blocks, customers)
        for (blocks, place, customers), of in sorted(cells.items(), key=lambda cell: cell[0])
    ]


def _curve(place: str, blocks: int, points: tuple[Point, ...], cores: int, seed: int) -> Curve:
    first, last = points[0], points[-1]
    told = [point.generator_demand_s for point in points if point.generator_demand_s is not None]
    generator_s = told[-1] if told else 0.0
    measurements = {
        point.customers: [run.window.throughput_per_s for run in point.runs] for point in points
    }
    has_law = len(points) >= LEAST_POINTS
    is_repeated = all(len(found) > 1 for found in measurements.values())
    random = Random(f"{seed} knee {place} {blocks}")  # noqa: S311  no secrets
    return Curve(
        place=place,
        blocks=blocks,
        points=points,
        demand_s=first.response.value if first.customers == 1 else None,
        gap_s=(last.service_demand_s + generator_s) / cores,
        growth=growth(points),
        law=scalability.fit(measurements) if has_law else None,
        knee=scalability.knee_interval(measurements, random) if has_law and is_repeated else None,
    )


def growth(points: Sequence[Point]) -> Growth | None:
    """The growth of R from the first saturated point on; None if there are too few points."""
    highest = max(point.throughput.value for point in points)
    least = SATURATED_SHARE * highest
    beyond = list(dropwhile(lambda point: point.throughput.value < least, points))
    if len(beyond) < LEAST_SATURATED:
        return None
    ns = [float(point.customers) for point in beyond]
    responses_s = [point.response.value for point in beyond]
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
