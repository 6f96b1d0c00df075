"""Predicts each run by models, and judges whether the run agrees. It reads only files.

Service times come from the run `alone`, at a utilisation of 0.03, as in the study: their mean E[S]
and coefficient of variation cv. The time that a request of another run would have taken alone is
computed from the request: by a straight line through the run alone over the rows of the statement
and the rows that it skips (`asked.sizes`), by the time that the known server was told to sleep, or,
if neither is known, by the mean. With these times the arrivals of the run are sent through queues:

    m servers      one queue, m servers, in order of arrival: the study's station
    shared cores   all requests at once share the cores of the machine equally; none waits

Each request is compared with its own prediction. These predictions do not assume exponential times;
M/M/m does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any

from loadtests.experiments.client_server.asked import sizes
from loadtests.experiments.client_server.measuring import ALONE, POINTS
from loadtests.experiments.client_server.systems import KNOWN, KNOWN_SERVICE_TIME_S
from loadtests.generation.rows import Row
from loadtests.generation.run import SCHEDULES
from loadtests.generation.schedule import Arrival, load
from loadtests.lab.raw import rows_by_run
from loadtests.lab.results import Results
from loadtests.models import replay
from loadtests.models.distributions import Empirical, ServiceTimes, with_mean_and_cv
from loadtests.models.estimates import (
    BATCHES,
    Interval,
    Verdict,
    batch_means,
    paired_difference,
    verdict,
)
from loadtests.models.linear import least_squares
from loadtests.models.multi_server import mgm_allen_cunneen, mmm
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.samples import quantile, summary
from loadtests.models.steady_state import SteadyState, Unstable

SIMULATED_RUNS = 200
LEAST_R2 = 0.5  # a line that explains less is not used
LEAST_COMPUTED_S = 1e-6


@dataclass(frozen=True, slots=True)
class Line:
    """A linear function for service times. coefficients_s: for the sizes of `asked.sizes`.

    r2: the share of the variance that it explains.
    """

    coefficients_s: tuple[float, ...]
    r2: float

    def at(self, of: Sequence[float]) -> float:
        """The time in seconds for these sizes."""
        time_s = sum(b * x for b, x in zip(self.coefficients_s, of, strict=True))
        return max(LEAST_COMPUTED_S, time_s)


@dataclass(frozen=True)
class Alone:
    """The service times (s) of a system at so low a rate that customers hardly ever wait.

    overhead_s: mean time that the known server takes beyond the time it is told to sleep; None for
    other systems.
    """

    times_s: tuple[float, ...]
    line: Line | None
    overhead_s: float | None

    @cached_property
    def mean_s(self) -> float:
        """E[S]: measured, or for the known server the chosen mean plus the measured overhead."""
        if self.overhead_s is not None:
            return KNOWN_SERVICE_TIME_S + self.overhead_s
        return summary(self.times_s).mean

    @cached_property
    def cv(self) -> float:
        """The coefficient of variation."""
        if self.overhead_s is not None:
            return KNOWN_SERVICE_TIME_S / self.mean_s
        return summary(self.times_s).cv

    @property
    def distribution(self) -> ServiceTimes:
        """The distribution for simulations: by the known mean and cv, or the measured times."""
        if self.overhead_s is not None:
            return with_mean_and_cv(self.mean_s, self.cv)
        return Empirical(self.times_s)

    @cached_property
    def interval(self) -> Interval:
        """The confidence interval of the measured mean."""
        return batch_means(self.times_s, min(BATCHES, len(self.times_s)))

    def of(self, arrival: Arrival) -> float:
        """The time in seconds that this request would have taken alone."""
        if arrival.demand_s is not None and self.overhead_s is not None:
            return max(LEAST_COMPUTED_S, arrival.demand_s + self.overhead_s)
        if self.line is not None:
            return self.line.at(sizes(arrival.body))
        return self.mean_s


@dataclass(frozen=True)
class Point:
    """A run: its row of points.csv, its requests in order of arrival, and its system alone.

    reasons: why it was rejected, "" if it counts. cores: number of cores of the machine.
    """

    run: str
    system: str
    kind: str
    role: str
    servers: int
    rate_per_s: float
    cores: int
    rows: tuple[Row, ...]
    schedule: tuple[Arrival, ...]
    alone: Alone
    reasons: str

    @property
    def interarrival_s(self) -> float:
        """1/λ."""
        return 1 / self.rate_per_s

    @property
    def offered(self) -> float:
        """The mean number of busy servers, a = λ·E[S]."""
        return self.rate_per_s * self.alone.mean_s

    @property
    def utilisation(self) -> float:
        """χ = a/m."""
        return self.offered / self.servers

    @cached_property
    def responses_s(self) -> tuple[float, ...]:
        """Response times from the intended arrival; for a run alone service times from sending."""
        if self.role == ALONE:
            return self.alone.times_s
        return tuple(row.open_response_s for row in self.rows)

    @cached_property
    def measured(self) -> Interval:
        """The mean response time. Its interval is from batches, and too narrow for χ ≥ 0.8."""
        return batch_means(self.responses_s, min(BATCHES, len(self.responses_s)))

    @property
    def p95_s(self) -> float:
        """The response time that 95 % of the requests do not exceed."""
        return quantile(self.responses_s, 0.95)

    @property
    def markov(self) -> SteadyState | None:
        """M/M/m; None if it has no steady state."""
        return _steady(partial(mmm, self.rate_per_s, self.alone.mean_s, self.servers))

    @property
    def general(self) -> SteadyState | None:
        """M/G/m by Allen and Cunneen, with the measured cv; None if it has no steady state."""
        return _steady(
            partial(
                mgm_allen_cunneen,
                *(self.rate_per_s, self.alone.mean_s, self.alone.cv, self.servers),
            )
        )

    @cached_property
    def simulated(self) -> Expectation:
        """Results of simulated runs like this one, in an m-server queue with measured times."""
        return expectation(
            Protocol(len(self.schedule) * self.interarrival_s, runs=1),
            self.rate_per_s,
            self.alone.distribution,
            Random(self.run),  # noqa: S311  no secrets; the same report each time
            simulated_runs=SIMULATED_RUNS,
            discipline=replay.with_servers(self.servers),
        )

    @cached_property
    def queued(self) -> "Replayed":
        """The run replayed through m servers in order of arrival."""
        return self._replayed(replay.with_servers(self.servers))

    @cached_property
    def shared(self) -> "Replayed | None":
        """The run replayed through the machine's shared cores; None for the server that sleeps."""
        if self.system == KNOWN:
            return None
        return self._replayed(partial(replay.processor_sharing, servers=self.cores))

    def _replayed(self, discipline: replay.Discipline) -> "Replayed":
        arrivals_s = [arrival.intended_s for arrival in self.schedule]
        services_s = [self.alone.of(arrival) for arrival in self.schedule]
        predicted_s = discipline(arrivals_s, services_s)
        batches = min(BATCHES, len(predicted_s))
        difference = paired_difference(self.responses_s, predicted_s, batches)
        return Replayed(summary(predicted_s).mean, difference, counts=not self.reasons)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run replayed through a queue. mean_s: its mean response time there.

    difference: measured − replayed, request by request. counts: whether the run was accepted.
    """

    mean_s: float
    difference: Interval
    counts: bool

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the model; None for a rejected run."""
        return verdict(self.difference, self.mean_s) if self.counts else None

    @property
    def told(self) -> str:
        """The verdict in words."""
        return str(self.verdict) if self.verdict else "rejected"


def _steady(asked: Any) -> SteadyState | None:
    try:
        found: SteadyState = asked()
    except Unstable:
        return None
    return found


# --- from the files --------------------------------------------------------------------------


def points(results: Results) -> list[Point]:
    """Every complete run of points.csv, in order. Raises ResultsError.

    If a run alone was rejected, the runs that take their service times from it are rejected, too.
    """
    cores = int(results.manifest()["machine"]["cores"])
    rows = rows_by_run(results)
    reasons = {row["run"]: row["reasons"] for row in _optional(results, "runs")}
    found, alone = [], dict[tuple[str, str], Alone]()
    reasons_alone = dict[tuple[str, str], str]()
    for told in results.rows(POINTS):
        run, of = told["run"], (told["system"], told["kind"])
        schedule = _schedule(results, run)
        answered = _answered(rows.get(run, ()), schedule)
        if answered is None:
            continue  # the run was cut short
        reason = reasons.get(run, "it was not judged")
        if told["role"] == ALONE:
            alone[of], reasons_alone[of] = _alone(answered, schedule), reason
        if of not in alone:
            continue
        found.append(
            Point(
                *(run, told["system"], told["kind"], told["role"], int(told["servers"])),
                *(float(told["rate_per_s"]), cores, answered, schedule, alone[of]),
                reason or reasons_alone[of],
            )
        )
    return found


def _optional(results: Results, name: str) -> list[dict[str, str]]:
    return results.rows(name) if results.has(name) else []


def _schedule(results: Results, run: str) -> tuple[Arrival, ...]:
    path = results.folder / SCHEDULES / f"{run}.csv"
    return tuple(load(path)) if path.exists() else ()


def _answered(rows: Sequence[Row], schedule: Sequence[Arrival]) -> tuple[Row, ...] | None:
    """The rows in order of arrival; None unless there is one for every arrival."""
    ordered = sorted(rows, key=lambda row: row.index)
    whole = schedule and [row.index for row in ordered] == [one.index for one in schedule]
    return tuple(ordered) if whole else None


def _alone(rows: Sequence[Row], schedule: Sequence[Arrival]) -> Alone:
    times_s = tuple(row.closed_response_s for row in rows)
    overhead_s = None
    demands_s = [arrival.demand_s for arrival in schedule if arrival.demand_s is not None]
    if len(demands_s) == len(times_s):
        overhead_s = summary(times_s).mean - summary(demands_s).mean
    return Alone(times_s, line_through(times_s, [sizes(one.body) for one in schedule]), overhead_s)


def line_through(times_s: Sequence[float], asked: Sequence[Sequence[float]]) -> Line | None:
    """The line by least squares; None if sizes do not vary or it explains less than LEAST_R2."""
    if len(asked[0]) == 1:
        return None
    try:
        found = tuple(least_squares(asked, times_s))
    except ValueError:
        return None
    mean_s = summary(times_s).mean
    total = math.fsum((time_s - mean_s) ** 2 for time_s in times_s)
    missed = math.fsum(
        (time_s - sum(b * x for b, x in zip(found, of, strict=True))) ** 2
        for time_s, of in zip(times_s, asked, strict=True)
    )
    r2 = 1 - missed / total if total else 0.0
    return Line(found, r2) if r2 >= LEAST_R2 else None
