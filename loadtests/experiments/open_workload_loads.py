"""Loads of open workloads: which there are to be, and the runs of them that were made.

L is the rate at which a server is busy all the time. Times of a request, all in its row, in seconds
since the run's start: `intended_s`, when it was to arrive; `sent_s`; `server_start_s`, if the
server shares the generator's clock; `done_s`; and `service_s`, the time that the server measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadtests.generation.calibration import WARM_UP as CALIBRATION_WARM_UP
from loadtests.generation.calibration import turnaround_s
from loadtests.generation.rows import Row
from loadtests.grouping import grouped
from loadtests.lab.experiment import Options
from loadtests.lab.published import OPEN_RUN_S, OPEN_RUNS, UNROUNDED
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Line, Results
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import REPLICATIONS, WARM_UP_ARRIVALS, warm_up_of
from loadtests.models.open_queue import Queue

STUDY_FRACTIONS: Sequence[float] = (0.3, 0.5, 0.8, 0.85)
STUDY_SERVICES = OPEN_RUN_S / UNROUNDED.mean_s
"""The length of a run of the study in service times: 44."""

AS_THE_STUDY, STEADY = "as-the-study", "steady"

STUDY, SCAN = "study", "scan"
ELSEWHERE, ELSEWHERE_SCANS = "rankings", "scans"  # of a service on another machine
ELSEWHERE_QUESTIONS = "questions"
SERVERS: Mapping[str, str] = {
    STUDY: "the study's way",
    SCAN: "our scan",
    ELSEWHERE: "rankings",
    ELSEWHERE_SCANS: "scans",
    ELSEWHERE_QUESTIONS: "the three questions",
}
"""Name in tables -> what it is."""

ARRIVALS: Mapping[float, int] = {0.3: 120, 0.5: 170, 0.8: 500, 0.85: 600}
QUICK_FRACTIONS: Sequence[float] = (0.3, 0.85)
QUICK_ARRIVALS: Mapping[float, int] = {0.5: 150, 0.85: 300}

BRIEF_WARM_UP, WARM_UP = 50, WARM_UP_ARRIVALS
BRIEF_UP_TO = 0.5
MOST_UNREPORTED = 0.01  # share of the requests without a service time; those get the mean
DRAWS = 8  # of service times, to forecast with
SMALL = 1e-4  # relative step of a derivative
PLAN, REFUSED, CALIBRATION = "plan", "refused", "calibration-"
SERVICE_FACTS = "service"
SENTENCES = Sentences("open_workload")

Array = NDArray[Any]


class LoadKey(NamedTuple):
    """Names a load, as tables do. fraction: the share of L."""

    server: str
    part: str
    fraction: float

    @property
    def label(self) -> str:
        return f"{self.fraction:.2g} of L, {SERVERS[self.server]}"


class _Keyed:
    """Adds the key of a load to what has its server, part and fraction."""

    __slots__ = ()
    server: str
    part: str
    fraction: float

    @property
    def key(self) -> LoadKey:
        return LoadKey(self.server, self.part, self.fraction)


@dataclass(frozen=True, slots=True)
class Load(_Keyed):
    """Defines runs of a server at one share of L.

    part: AS_THE_STUDY (each run lasts `services` service times, from empty) or STEADY (each has
    `arrivals` arrivals).
    """

    server: str
    part: str
    fraction: float
    runs: int
    arrivals: int = 0
    services: float = 0.0

    def name(self, number: int) -> str:
        return f"{self.server}-{self.part}-{self.fraction:g}-{number:02}"


def planned(options: Options) -> Sequence[Load]:
    """Return all loads, or those that were chosen, in the order in which they are measured."""
    loads = [*_loads_of(STUDY, options), *_loads_of(SCAN, options)]
    return [load for load in loads if not options.loads or load.fraction in options.loads]


def fractions(options: Options) -> Sequence[float]:
    return sorted({load.fraction for load in planned(replace(options, loads=()))})


def _loads_of(server: str, options: Options) -> Sequence[Load]:
    """Return the loads of a server. Those of a quick run take two minutes for all servers."""
    if options.quick:
        fractions, brief_runs, steady_runs = QUICK_FRACTIONS, 2, 1
        arrivals = QUICK_ARRIVALS if server == STUDY else {0.5: QUICK_ARRIVALS[0.5]}
    else:
        fractions, brief_runs, steady_runs = STUDY_FRACTIONS, OPEN_RUNS, REPLICATIONS
        chosen = (0.5, 0.85) if server == SCAN else ARRIVALS
        arrivals = {fraction: ARRIVALS[fraction] for fraction in chosen}
    brief = [Load(server, AS_THE_STUDY, f, brief_runs, services=STUDY_SERVICES) for f in fractions]
    runs = options.reps or steady_runs
    steady = [Load(server, STEADY, f, runs, arrivals=count) for f, count in arrivals.items()]
    return [*brief, *steady] if server == STUDY else steady


@dataclass(frozen=True, slots=True)
class RefusedLine(_Keyed, Line):
    """Lists a load that was not measured, because the load generator cannot send so much."""

    server: str
    part: str
    fraction: float
    rate_per_s: float
    limit_per_s: float


# --- runs that were made -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunLine(_Keyed, Line):
    """Lists an open run in the plan, and what was calibrated just before it.

    calibration: the run of one customer. service_time_s, service_variance_s2: E[S] and its
    variance, as one customer saw them. overhead_s: the part of E[S] that the server did not report,
    None if it reported nothing. delay_s: the part of E[S] that does not keep the server from
    serving others. servers: how many workers it has, by the model.
    """

    run: str
    server: str
    part: str
    fraction: float
    rate_per_s: float
    duration_s: float
    calibration: str
    service_time_s: float
    service_variance_s2: float
    overhead_s: float | None
    delay_s: float
    servers: int


@dataclass(frozen=True)
class OpenRun(RunLine):
    """Holds a run with its rows in order of arrival.

    before: the rows of its calibration that count, if there are any.
    """

    is_accepted: bool
    rows: Sequence[Row]
    before: Sequence[Row] = ()

    @property
    def queue(self) -> Queue:
        return Queue(self.servers)

    @property
    def busy_s(self) -> float:
        """Return the part of E[S] (s) during which the server cannot serve others."""
        return self.service_time_s - self.delay_s

    @property
    def utilisation(self) -> float:
        """Return ρ by the model; above 1 if the server does more at once than that says."""
        return self.rate_per_s * self.busy_s / self.servers

    @property
    def is_stable(self) -> bool:
        """Tell whether the model has a steady state, also if service takes a little longer."""
        return (1 + SMALL) * self.utilisation < 1

    @property
    def cv(self) -> float:
        """Return the coefficient of variation of the time in the server, as calibrated."""
        return float(self.service_variance_s2**0.5 / self.busy_s)

    @property
    def responses_s(self) -> list[float]:
        """Return response times (s), from the intended arrival."""
        return [row.open_response_s for row in self.rows]

    @property
    def warm_up(self) -> int:
        """Return how many of its first arrivals do not count; the study left out none.

        By simulation, R of a queue that began empty is within 0.5 % of the steady state after 20
        arrivals at half of L, and within 1 % after 200 at 0.85; above that far more are needed.
        """
        if self.part == AS_THE_STUDY:
            return 0
        return warm_up_of(
            len(self.rows), BRIEF_WARM_UP if self.fraction <= BRIEF_UP_TO else WARM_UP
        )

    def mean(self, values: Iterable[float]) -> float:
        """Return the mean of the values of requests that succeeded, without the warm-up."""
        pairs = islice(zip(self.rows, values, strict=True), self.warm_up, None)
        return fmean(value for row, value in pairs if row.succeeded)

    @cached_property
    def served_s(self) -> list[float] | None:
        """Return how long (s) each request kept the server; None if it did not report that."""
        times_s = [row.service_s for row in self.rows]
        if self.overhead_s is None or times_s.count(None) > MOST_UNREPORTED * len(times_s):
            return None
        more_s = self.overhead_s - self.delay_s
        return [self.busy_s if time_s is None else time_s + more_s for time_s in times_s]

    def drawn_s(self) -> Iterator[list[float]]:
        """Draw a calibrated time (s) for each request, again and again; the same for a run."""
        times_s = [max(0.0, row.closed_response_s - self.delay_s) for row in self.before]
        random = Random(self.run)  # noqa: S311  no secrets
        while True:
            yield random.choices(times_s or [self.busy_s], k=len(self.rows))

    @cached_property
    def forecast_s(self) -> Array:
        """Return the response times (s) of the same arrivals in the model's queue, on average.

        There service times are drawn from the calibration, again and again.
        """
        replays_s = [self.replayed_s(times_s) for times_s in islice(self.drawn_s(), DRAWS)]
        forecast_s: Array = np.mean(replays_s, axis=0)
        return forecast_s

    def overtaken(self, served_s: Sequence[float]) -> list[bool]:
        """Tell of each request whether a later one overtook it: sent later, and served sooner.

        Both by more than the time around a service, which varies. served_s: service times.
        """
        margin_s = self.overhead_s or 0.0
        begun_s = np.array([row.done_s for row in self.rows]) - served_s
        order, sent_s = self._by_sending
        soonest_s = np.append(np.minimum.accumulate(begun_s[order][::-1])[::-1], inf)
        later = np.searchsorted(sent_s[order], sent_s + margin_s, side="right")
        overtaken: list[bool] = (soonest_s[later] < begun_s - margin_s).tolist()
        return overtaken

    @cached_property
    def _by_sending(self) -> tuple[Array, Array]:
        """Return the order in which requests were sent, and when (s) each was."""
        sent_s = np.array([row.sent_s for row in self.rows])
        return np.argsort(sent_s, kind="stable"), sent_s

    def replayed_s(self, services_s: Sequence[float]) -> list[float]:
        """Return the response times (s) of the same arrivals in the queue of the model."""
        times_s = self.queue.replayed_s([row.intended_s for row in self.rows], services_s)
        return [time_s + self.delay_s for time_s in times_s]

    def predicted_s(self, cv: float, *, busier: float = 1.0) -> float:
        """Return E[R] in the long run, in s. Raises Unstable if there is none.

        cv: of the service times. busier: how many times the rate is as high.
        """
        steady = self.queue.steady(busier * self.rate_per_s, self.busy_s, cv)
        return steady.response_time_s + self.delay_s

    def more_than_served_s(self, served_s: Sequence[float]) -> list[float]:
        """Return by how much (s) each request took longer, from sending on, than as served."""
        _, sent_s = self._by_sending
        closed_s = [row.closed_response_s for row in self.rows]
        more_s: list[float] = (closed_s - self.as_served_s(served_s, sent_s)).tolist()
        return more_s

    def as_served_s(self, served_s: Sequence[float], arrivals_s: Array) -> Array:
        """Return the response times (s) of requests that arrive so in the queue of the model.

        There each keeps a server for the time that was reported and the turnaround, if that is
        known.
        """
        overhead_s = self.overhead_s or 0.0
        turn_s = turnaround_s(self.rows, overhead_s)
        delay_s = self.delay_s if turn_s is None else overhead_s - turn_s
        order = np.argsort(arrivals_s, kind="stable")
        services_s = np.array(served_s)[order] + self.delay_s - delay_s
        responses_s = np.full(len(order), delay_s)
        responses_s[order] += self.queue.replayed_s(arrivals_s[order].tolist(), services_s.tolist())
        return responses_s


def accepted(runs: Sequence[OpenRun]) -> list[OpenRun]:
    return [run for run in runs if run.is_accepted]


def open_runs(results: Results) -> list[OpenRun]:
    """Return all runs with rows, accepted or rejected, by load as in the plan, even if resumed."""
    rows, judged = rows_by_run(results), accepted_by_run(results)
    return [
        OpenRun(
            **line.cells(),
            is_accepted=judged.get(line.run, False),
            rows=sorted(rows[line.run], key=lambda row: row.index),
            before=rows[line.calibration][CALIBRATION_WARM_UP:],
        )
        for lines in grouped(results.lines(PLAN, RunLine), lambda line: line.key).values()
        for line in lines
        if rows[line.run]
    ]
