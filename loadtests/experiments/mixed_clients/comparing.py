"""Reads runs of N customers, and compares them with the bounds of a closed system.

Without think time (Z = 0) the asymptotic bounds are X ≤ min(N/D, 1/D_b) and R ≥ max(D, N·D_b). D is
the response time of one customer. D_b is the demand at the bottleneck, assumed to be the
processors: the processor time of an interaction in the service and in the generator on the same
machine, divided by the number of cores. Locks (also the interpreter's) and the disk can only lower
the throughput further; they are the reason if the measurement stays below 1/D_b.

Beyond the knee a line R = a + b·N and an exponential R = a·e^(b·N) are fitted to the same points.
In a closed system the line must fit better, and its slope is the time between two customers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile, pairwise
from operator import attrgetter
from random import Random
from statistics import fmean

import numpy as np

from loadtests.experiments.mixed_clients.measuring import LOCAL, NAMES, PLAN, PlanLine
from loadtests.generation.interactions import whole
from loadtests.generation.rows import Row, Window, closed_window
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, Repeated, accepted, recorded_runs, samples_by_run
from loadtests.lab.results import Results
from loadtests.lab.scalability import Scaling
from loadtests.machine_samples import Sample
from loadtests.models.sample_statistics import mean_of_known
from loadtests.scenarios import STEPS

LEAST_SAMPLED_S = 2.0  # less is too short to measure the generator
SATURATED_SHARE = 0.9  # saturation begins at this share of the highest throughput
LEAST_POINTS, LEAST_SATURATED = 3, 4


@dataclass(frozen=True, slots=True)
class MixedRun:
    """A run, and the time in which all customers are at work."""

    line: PlanLine
    window: Window
    generator_demand_s: float | None  # processor time for an interaction; None: none, or too short
    is_accepted: bool


def mixed_runs(results: Results) -> list[MixedRun]:
    """All runs with a window, in the order in which they were made."""
    samples, found = samples_by_run(results), []
    for line, rows, is_accepted in recorded_runs(results, PLAN, PlanLine):
        interactions = whole(rows, STEPS)
        try:
            window = closed_window(interactions, line.warm_up)
        except ValueError:  # the first customer finished before the last was ready: no window
            continue
        during = [] if line.place == LOCAL else samples.get(line.run, [])
        found.append(MixedRun(line, window, _generator_s(interactions, during), is_accepted))
    return found


def _generator_s(interactions: Sequence[Row], samples: Sequence[Sample]) -> float | None:
    """The generator's processor time for an interaction, over the seconds that have samples."""
    last_s = max(row.done_s for row in interactions)
    during = [sample for sample in samples if sample.at_s <= last_s]
    if not during or during[-1].at_s < LEAST_SAMPLED_S:
        return None
    lengths_s = (end_s - start_s for start_s, end_s in pairwise([0.0, *(of.at_s for of in during)]))
    used_s = sum(of.client_cpu * length_s for of, length_s in zip(during, lengths_s, strict=True))
    return used_s / sum(row.done_s <= during[-1].at_s for row in interactions)


@dataclass(frozen=True)
class Point(Repeated[MixedRun]):
    """N customers at a place and ledger. Means of rejected runs are shown, but for no finding."""

    @property
    def line(self) -> PlanLine:
        """The line of one of the runs, which has place, ledger and N."""
        return self.runs[0].line

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
        return fmean(run.line.cpu_s / run.line.interactions for run in self.runs)


def points_of(runs: Sequence[MixedRun]) -> list[Point]:
    """All measurements, accepted or rejected, ordered by ledger, place and N."""
    key = attrgetter("line.blocks", "line.place", "line.customers")
    return Point.of_each(sorted(runs, key=key), key)


@dataclass(frozen=True, slots=True)
class Growth:
    """How R grows with N beyond the knee. Errors are root mean squares relative to R."""

    first: int  # lowest N there
    points: int  # how many
    slope_s: float  # of the line: the time that each further customer adds
    line_error: float
    exponential_error: float


@dataclass(frozen=True)
class Curve:
    """All accepted points at one place and ledger, at least one. cores: those of the machine."""

    points: Sequence[Point]
    cores: int
    seed: int

    def __str__(self) -> str:
        return f"{self.line.blocks} blocks, {NAMES[self.line.place]}"

    @property
    def line(self) -> PlanLine:
        """The line of one of the runs, which has place and ledger."""
        return self.points[0].line

    @property
    def best(self) -> Point:
        """The point with the highest throughput."""
        return max(self.points, key=lambda point: point.throughput.value)

    @property
    def demand_s(self) -> float | None:
        """D, the response time of one customer; None if its runs were rejected."""
        return self.points[0].response.value if self.line.customers == 1 else None

    @cached_property
    def gap_s(self) -> float:
        """D_b of the most customers; the generator's is of the most for whom it is known."""
        told = [mean_of_known(run.generator_demand_s for run in of.runs) for of in self.points]
        generator_s = next((seconds for seconds in reversed(told) if seconds is not None), 0.0)
        return (self.points[-1].service_demand_s + generator_s) / self.cores

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

    @cached_property
    def growth(self) -> Growth | None:
        """The growth of R from the first saturated point on; None if there are too few points."""
        least = SATURATED_SHARE * self.best.throughput.value
        beyond = list(dropwhile(lambda point: point.throughput.value < least, self.points))
        if len(beyond) < LEAST_SATURATED:
            return None
        ns = np.array([point.line.customers for point in beyond])
        seen = np.array([point.response.value for point in beyond])
        line, exponential = np.polyfit(ns, seen, 1), np.polyfit(ns, np.log(seen), 1)
        fitted = np.polyval(line, ns), np.exp(np.polyval(exponential, ns))
        errors = (float(np.sqrt(np.mean((of / seen - 1) ** 2))) for of in fitted)
        return Growth(beyond[0].line.customers, len(beyond), float(line[0]), *errors)

    @cached_property
    def scaling(self) -> Scaling:
        """The scalability law of the throughputs, and its knee."""
        xs = {
            of.line.customers: [run.window.throughput_per_s for run in of.runs]
            for of in self.points
        }
        purpose = f"{self.seed} knee {self.line.place} {self.line.blocks}"
        return Scaling(xs, LEAST_POINTS, Random(purpose))  # noqa: S311  no secrets


def curves(points: Sequence[Point], cores: int, seed: int) -> list[Curve]:
    """A curve for each ledger and place with an accepted point, in their order."""
    found = grouped(accepted(points), lambda point: (point.line.blocks, point.line.place))
    return [Curve(of, cores, seed) for of in found.values()]
