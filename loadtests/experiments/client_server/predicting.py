"""Predicts each run by models, and judges whether the runs of a point agree. It reads only files.

Service times come from the run `alone`, at a utilisation of 0.03, as in the study: their mean E[S]
and coefficient of variation cv. The time that a request of another run would have taken alone is
computed from the request: by a straight line through the run alone over the rows of the statement
and the rows that it skips (`asked.sizes`), by the time that the known server was told to sleep, or,
if neither is known, by the mean; and what the run alone left unexplained is drawn from there. With
these times the arrivals of the run are sent through queues, `DRAWS` times:

    m servers      one queue, m servers, in order of arrival: the study's station
    shared cores   all requests at once share the cores of the machine equally; none waits

Each request is compared with its own prediction. These predictions do not assume exponential times;
M/M/m does.

Intervals. A point has one run, or several that were each calibrated and measured alone anew. The
interval of several is Student's, so it has their calibrations in it. That of one is from batches,
and is widened by what the replay moves if E[S] lies at the ends of its own interval. Near
saturation, from `NEAR_SATURATION` on, batches of one run depend on each other: there it has no
interval and decides nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from random import Random
from statistics import fmean

from loadtests.experiments.client_server.alone import Alone, alone
from loadtests.experiments.client_server.measuring import ALONE, POINTS, PointLine
from loadtests.experiments.client_server.systems import KNOWN
from loadtests.generation.rows import Row
from loadtests.generation.run import SCHEDULES
from loadtests.generation.schedule import Arrival, load
from loadtests.lab.repeated import Estimate, Repeated, rows_by_run, that_count
from loadtests.lab.repeated import of as estimated
from loadtests.lab.results import Results
from loadtests.models import replay
from loadtests.models.estimates import (
    Interval,
    Verdict,
    confidence_interval,
    mean_over_runs,
    verdict,
)
from loadtests.models.open_queue import Queue, SteadyState, Unstable, mgm_allen_cunneen, mmm
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.samples import quantile, summary

SIMULATED_RUNS = 200
DRAWS = 10  # of the unexplained part of all service times of a run
NEAR_SATURATION = 0.8  # the utilisation from which only several runs count
LEAST_NEAR_SATURATION = 4  # runs that decide there


@dataclass(frozen=True)
class OneRun:
    """A run: its requests in order of arrival, and its system alone.

    reasons: why it was rejected, "" if it counts.
    """

    run: str
    rate_per_s: float
    rows: tuple[Row, ...]
    schedule: tuple[Arrival, ...]
    alone: Alone
    reasons: str

    @property
    def is_accepted(self) -> bool:
        """Whether it counts."""
        return not self.reasons

    def replayed(self, discipline: replay.Discipline) -> "Replay":
        """The run sent through a queue."""
        random = Random(self.run)  # noqa: S311  no secrets; the same report each time
        arrivals_s = [arrival.intended_s for arrival in self.schedule]
        draws = [self.alone.drawn(self.schedule, random) for _ in range(DRAWS)]

        def mean_s(factor: float) -> float:
            return summary(discipline(arrivals_s, [factor * s for s in draws[0]])).mean

        responses_s = [discipline(arrivals_s, services_s) for services_s in draws]
        error = min(self.alone.error, 0.5)
        moved_s = abs(mean_s(1 + error) - mean_s(1 - error)) / 2
        predicted_s = tuple(map(fmean, zip(*responses_s, strict=True)))
        measured_s = [row.open_response_s for row in self.rows]
        differences_s = [a - b for a, b in zip(measured_s, predicted_s, strict=True)]
        return Replay(summary(predicted_s).mean, tuple(differences_s), moved_s)


@dataclass(frozen=True, slots=True)
class Replay:
    """A run sent through a queue. mean_s: its mean response time there.

    differences_s: measured − replayed of each request. moved_s: what the error of E[S] is worth.
    """

    mean_s: float
    differences_s: tuple[float, ...]
    moved_s: float

    @property
    def difference(self) -> Interval:
        """The mean difference. Its interval is from batches, and has the error of E[S] in it."""
        of = mean_over_runs([self.differences_s])
        return replace(of, half_width=math.hypot(of.half_width, self.moved_s))


@dataclass(frozen=True)
class Point(Repeated[OneRun]):
    """A system at one rate with m servers. cores: number of cores of the machine."""

    system: str
    kind: str
    role: str
    servers: int
    cores: int

    @property
    def run(self) -> str:
        """The id of its first run, which names the point."""
        return self.runs[0].run

    @property
    def reasons(self) -> str:
        """Why no run counts; "" if some do."""
        return self.runs[0].reasons

    @property
    def alone(self) -> Alone:
        """The service times that its first run was compared with."""
        return self.runs[0].alone

    @property
    def rate_per_s(self) -> float:
        """λ. Runs have their own, by their own calibrations."""
        return fmean(one.rate_per_s for one in self.runs)

    @property
    def service_s(self) -> float:
        """E[S]."""
        return fmean(one.alone.mean_s for one in self.runs)

    @property
    def service(self) -> Interval:
        """E[S] with its interval."""
        if len(self.runs) > 1:
            return confidence_interval([one.alone.mean_s for one in self.runs])
        return self.alone.interval

    @property
    def interarrival_s(self) -> float:
        """1/λ."""
        return 1 / self.rate_per_s

    @property
    def utilisation(self) -> float:
        """χ = λ·E[S]/m."""
        return self.rate_per_s * self.service_s / self.servers

    @cached_property
    def responses_s(self) -> tuple[float, ...]:
        """Response times from the intended arrival; for a run alone service times from sending."""
        return tuple(time_s for one in self.runs for time_s in self._responses_s(one))

    def _responses_s(self, one: OneRun) -> Sequence[float]:
        if self.role == ALONE:
            return one.alone.times_s
        return [row.open_response_s for row in one.rows]

    @property
    def mean_s(self) -> float:
        """The mean response time over runs."""
        return self.response.value

    @property
    def response(self) -> Estimate:
        """The mean response time, without an interval for a single run near saturation."""
        if len(self.runs) == 1 and self.is_near_saturation:
            return Estimate(summary(self.responses_s).mean)
        return estimated(mean_over_runs([self._responses_s(one) for one in self.runs]))

    @property
    def is_near_saturation(self) -> bool:
        """Whether batches of a run depend on each other."""
        return self.role != ALONE and self.utilisation >= NEAR_SATURATION

    @property
    def p95_s(self) -> float:
        """The response time that 95 % of the requests do not exceed."""
        return quantile(self.responses_s, 0.95)

    @property
    def markov_s(self) -> float | None:
        """The mean response time of M/M/m; None if it has no steady state."""
        return _steady_s(partial(mmm, self.rate_per_s, self.service_s, self.servers))

    @property
    def general_s(self) -> float | None:
        """The mean response time of M/G/m by Allen and Cunneen, with the measured cv.

        None if it has no steady state.
        """
        of = self.rate_per_s, self.service_s, self.alone.cv, self.servers
        return _steady_s(partial(mgm_allen_cunneen, *of))

    @cached_property
    def simulated(self) -> Expectation:
        """Results of simulated runs like this one, in an m-server queue with measured times."""
        return expectation(
            Protocol(len(self.runs[0].schedule) * self.interarrival_s, runs=1),
            self.rate_per_s,
            self.alone.distribution,
            Random(self.run),  # noqa: S311  no secrets; the same report each time
            simulated_runs=SIMULATED_RUNS,
            discipline=Queue(self.servers).replayed_s,
        )

    @cached_property
    def queued(self) -> "Replayed":
        """The runs replayed through m servers in order of arrival."""
        return self._replayed(Queue(self.servers).replayed_s)

    @cached_property
    def shared(self) -> "Replayed | None":
        """The runs replayed through the machine's shared cores; None for the server that sleeps."""
        if self.system == KNOWN:
            return None
        return self._replayed(partial(replay.processor_sharing, servers=self.cores))

    def _replayed(self, discipline: replay.Discipline) -> "Replayed":
        found = [one.replayed(discipline) for one in self.runs]
        mean_s = fmean(one.mean_s for one in found)
        difference = found[0].difference
        if len(found) > 1:
            difference = confidence_interval([fmean(one.differences_s) for one in found])
        decides = not self.is_near_saturation or len(found) >= LEAST_NEAR_SATURATION
        return Replayed(mean_s, difference, not self.reasons, decides)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The runs of a point replayed through a queue. mean_s: the mean response time there.

    difference: measured − replayed. counts: whether the runs were accepted. decides: whether they
    are enough for a verdict.
    """

    mean_s: float
    difference: Interval
    counts: bool
    decides: bool

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the model; None for rejected runs."""
        if not self.counts:
            return None
        return verdict(self.difference, self.mean_s) if self.decides else Verdict.NOT_DECIDED

    @property
    def told(self) -> str:
        """The verdict in words."""
        return str(self.verdict) if self.verdict else "rejected"


def _steady_s(asked: Callable[[], SteadyState]) -> float | None:
    try:
        return asked().response_time_s
    except Unstable:
        return None


# --- from the files --------------------------------------------------------------------------


def points(results: Results) -> list[Point]:
    """The points of points.csv that have a complete run, in order. Raises ResultsError.

    If a run alone was rejected, the runs that take their service times from it are rejected, too.
    """
    cores = int(results.manifest()["machine"]["cores"])
    rows = rows_by_run(results)
    reasons = {row["run"]: row["reasons"] for row in results.rows_if_any("runs")}
    cells: dict[tuple[str, str, str, int, str], list[OneRun]] = {}
    found = dict[tuple[str, str, int], tuple[Alone, str]]()
    for line in results.lines(POINTS, PointLine):
        of = line.system, line.kind, line.rep
        schedule = _schedule(results, line.run)
        answered = _answered(rows.get(line.run, ()), schedule)
        if answered is None:
            continue  # the run was cut short
        reason = reasons.get(line.run, "it was not judged")
        if line.role == ALONE:
            found[of] = alone(answered, schedule), reason
        if of in found:
            own, of_alone = found[of]
            why = reason or of_alone
            one = OneRun(line.run, line.rate_per_s, answered, schedule, own, why)
            key = line.system, line.kind, line.role, line.servers, line.name
            cells.setdefault(key, []).append(one)
    return [Point(that_count(of), len(of), *key[:4], cores) for key, of in cells.items()]


def _schedule(results: Results, run: str) -> tuple[Arrival, ...]:
    path = results.folder / SCHEDULES / f"{run}.csv"
    return tuple(load(path)) if path.exists() else ()


def _answered(rows: Sequence[Row], schedule: Sequence[Arrival]) -> tuple[Row, ...] | None:
    """The rows in order of arrival; None unless there is one for every arrival."""
    ordered = sorted(rows, key=lambda row: row.index)
    whole = schedule and [row.index for row in ordered] == [one.index for one in schedule]
    return tuple(ordered) if whole else None
