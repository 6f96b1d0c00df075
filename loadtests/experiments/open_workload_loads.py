"""Loads of open workloads: which there are to be, and the runs of them that were made.

L is the rate at which a server is busy all the time. Times of a request, all in its row, in seconds
since the run's start: `intended_s`, when it was to arrive; `sent_s`; `server_start_s`, if the
server shares the generator's clock; `done_s`; and `service_s`, the time that the server measured.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from math import inf
from random import Random
from typing import NamedTuple

import numpy as np

from loadtests.generation.calibration import WARM_UP as CALIBRATION_WARM_UP
from loadtests.generation.calibration import turnaround_s
from loadtests.generation.rows import Row
from loadtests.grouping import grouped
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.published import OPEN_RUN_S, OPEN_RUNS, UNROUNDED
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Line, Results, ResultsError
from loadtests.models.estimates import BATCHES, REPLICATIONS, WARM_UP_ARRIVALS, warm_up_of
from loadtests.models.open_queue import Queue

STUDY_FRACTIONS = (0.3, 0.5, 0.8, 0.85)
STUDY_SERVICES = OPEN_RUN_S / UNROUNDED.mean_s
"""The length of a run of the study in service times: 44."""

AS_THE_STUDY, STEADY = "as-the-study", "steady"

STUDY, SCAN = "study", "scan"
SERVICE, SERVICE_SCANS, SERVICE_WORKERS = "service", "service-scans", "service-workers"
ELSEWHERE, ELSEWHERE_SCANS = "rankings", "scans"  # of a service on another machine
ELSEWHERE_QUESTIONS = "questions"
WORKERS = 2  # of the service as shipped
SERVERS: Mapping[str, str] = {
    STUDY: "the study's way",
    SCAN: "our scan",
    SERVICE: "the service, index, one worker",
    SERVICE_WORKERS: f"the service, index, {WORKERS} workers",
    SERVICE_SCANS: "the service, scans, one worker",
    ELSEWHERE: "rankings",
    ELSEWHERE_SCANS: "scans",
    ELSEWHERE_QUESTIONS: "the three questions",
}
"""Name in tables -> what it is."""

_OF_MODE: Mapping[Mode, Sequence[str]] = {
    Mode.EMULATED: (STUDY, SCAN),
    Mode.REAL: (SERVICE, SERVICE_WORKERS, SERVICE_SCANS),
}
_BRIEFLY = (SCAN, SERVICE_WORKERS, SERVICE_SCANS)
ARRIVALS: Mapping[float, int] = {0.3: 120, 0.5: 170, 0.8: 500, 0.85: 600}

BRIEF_WARM_UP, WARM_UP = 50, WARM_UP_ARRIVALS
BRIEF_UP_TO = 0.5
MOST_UNTOLD = 0.01  # share of the requests without a service time; those get the mean
DRAWS = 8  # of service times, to forecast with
SMALL = 1e-4  # relative step of a derivative
PLAN, REFUSED, CALIBRATION = "plan", "refused", "calibration-"
DEMANDS, CLOSED = "demands", "closed"
SERVICE_FACTS = "service"


class LoadKey(NamedTuple):
    """What a load is called in tables. fraction: the share of L."""

    server: str
    part: str
    fraction: float

    @property
    def told(self) -> str:
        """The load in words."""
        return f"{self.fraction:.2g} of L, {SERVERS[self.server]}"


class _Keyed:
    """What has a load's server, part and fraction."""

    __slots__ = ()
    server: str
    part: str
    fraction: float

    @property
    def key(self) -> LoadKey:
        """The load."""
        return LoadKey(self.server, self.part, self.fraction)


@dataclass(frozen=True, slots=True)
class Load(_Keyed):
    """Runs of a server at one share of L.

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
        """The name of its run of this number, from 1."""
        return f"{self.server}-{self.part}-{self.fraction:g}-{number:02}"


def planned(options: Options) -> Sequence[Load]:
    """All loads, or those that were chosen, in the order in which they are measured."""
    servers = (ELSEWHERE,) if options.host else _OF_MODE[options.mode]
    made = _quick if options.quick else _full
    found = [load for server in servers for load in made(server, options.reps)]
    return [load for load in found if not options.loads or load.fraction in options.loads]


def fractions(options: Options) -> Sequence[float]:
    """The shares of L from which one may choose."""
    return sorted({load.fraction for load in planned(replace(options, loads=()))})


def _full(server: str, reps: int | None) -> Sequence[Load]:
    """The study's way and the service with one worker at all loads, the others at two."""
    of_study = [
        Load(server, AS_THE_STUDY, fraction, OPEN_RUNS, services=STUDY_SERVICES)
        for fraction in STUDY_FRACTIONS
    ]
    chosen = (0.5, 0.85) if server in _BRIEFLY else ARRIVALS
    steady = [Load(server, STEADY, f, reps or REPLICATIONS, arrivals=ARRIVALS[f]) for f in chosen]
    return [*of_study, *steady] if server == STUDY else steady


def _quick(server: str, reps: int | None) -> Sequence[Load]:
    """Both servers with emulated storage, or all of the service, within two minutes."""
    steady = [Load(server, STEADY, f, reps or 1, arrivals=n) for f, n in ((0.5, 150), (0.85, 300))]
    if server != STUDY:
        return steady[:1]
    of_study = [Load(server, AS_THE_STUDY, f, 2, services=STUDY_SERVICES) for f in (0.3, 0.85)]
    return [*of_study, *steady]


@dataclass(frozen=True, slots=True)
class RefusedLine(_Keyed, Line):
    """A load that was not measured, because its rate is beyond the limit of the load generator."""

    server: str
    part: str
    fraction: float
    rate_per_s: float
    limit_per_s: float

    @property
    def told(self) -> str:
        """Why it was not measured, in a sentence."""
        return (
            f"{self.key.told}: not measured, because it would be {self.rate_per_s:.3g} requests a "
            f"second, and this load generator is proven up to {self.limit_per_s:g}; ask questions "
            "that take longer, as scans do."
        )


# --- runs that were made -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunLine(_Keyed, Line):
    """A line of the plan: an open run, and what was calibrated just before it.

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
    """A run with its rows in order of arrival.

    before, after: the rows of the calibrations around it that count, if there are any.
    """

    is_accepted: bool
    rows: Sequence[Row]
    before: Sequence[Row] = ()
    after: Sequence[Row] = ()

    @property
    def unit(self) -> str:
        """The replication to which it belongs: runs that share a calibration share its error."""
        return self.calibration

    @property
    def queue(self) -> Queue:
        """The model of the server."""
        return Queue(self.servers)

    @property
    def busy_s(self) -> float:
        """The part of E[S] during which the server cannot serve others."""
        return self.service_time_s - self.delay_s

    @property
    def utilisation(self) -> float:
        """ρ by the model; it may be above 1, which a server that does more at once can bear."""
        return self.rate_per_s * self.busy_s / self.servers

    @property
    def is_stable(self) -> bool:
        """Whether the model has a steady state, also if service takes a little longer."""
        return (1 + SMALL) * self.utilisation < 1

    @property
    def cv(self) -> float:
        """The coefficient of variation of the time in the server, as it was calibrated."""
        return float(self.service_variance_s2**0.5 / self.busy_s)

    @property
    def responses_s(self) -> list[float]:
        """Response times, from the intended arrival."""
        return [row.open_response_s for row in self.rows]

    @property
    def warm_up(self) -> int:
        """The number of its first arrivals that do not count; the study left out none.

        By simulation, R of a queue that began empty is within 0.5 % of the steady state after 20
        arrivals at half of L, and within 1 % after 200 at 0.85; above that far more are needed.
        """
        if self.part == AS_THE_STUDY:
            return 0
        return warm_up_of(
            len(self.rows), BRIEF_WARM_UP if self.fraction <= BRIEF_UP_TO else WARM_UP
        )

    @property
    def is_long_enough(self) -> bool:
        """Whether enough requests are left without the warm-up, one for each batch."""
        return len(self.rows) >= self.warm_up + BATCHES

    @cached_property
    def served_s(self) -> list[float] | None:
        """How long each request kept the server, as it measured that; None if it did not tell."""
        told = [row.service_s for row in self.rows]
        untold = sum(time_s is None for time_s in told)
        if self.overhead_s is None or untold > MOST_UNTOLD * len(told):
            return None
        more_s = self.overhead_s - self.delay_s
        return [self.busy_s if time_s is None else time_s + more_s for time_s in told]

    def drawn_s(self) -> Iterator[list[float]]:
        """Endless draws of a time from the calibration for each request, the same for a run."""
        times_s = [max(0.0, row.closed_response_s - self.delay_s) for row in self.before]
        random = Random(self.run)  # noqa: S311  no secrets
        while True:
            yield random.choices(times_s or [self.busy_s], k=len(self.rows))

    def more_than_forecast_s(self) -> list[float]:
        """By how much each request took longer than it does in the queue of the model on average.

        There its service time is drawn from the calibration, again and again.
        """
        replays_s = [self.replayed_s(times_s) for times_s in islice(self.drawn_s(), DRAWS)]
        more_s: list[float] = np.subtract(self.responses_s, np.mean(replays_s, axis=0)).tolist()
        return more_s

    def overtaken(self, served_s: Sequence[float]) -> list[bool]:
        """Whether a later request overtook each: it was sent later, and served sooner.

        Both by more than the time around a service, which varies. served_s: service times.
        """
        margin_s = self.overhead_s or 0.0
        both = zip(self.rows, served_s, strict=True)
        begun_s = [row.done_s - time_s for row, time_s in both]
        order = sorted(range(len(self.rows)), key=lambda n: self.rows[n].sent_s)
        sent_s = [self.rows[n].sent_s for n in order]
        soonest_s = [inf, *accumulate((begun_s[n] for n in reversed(order)), min)][::-1]
        found = [False] * len(order)
        for n, at_s in zip(order, sent_s, strict=True):
            later = bisect_right(sent_s, at_s + margin_s)
            found[n] = soonest_s[later] < begun_s[n] - margin_s
        return found

    def replayed_s(self, services_s: Sequence[float]) -> list[float]:
        """Response times of the same arrivals in the queue of the model."""
        times_s = self.queue.replayed_s([row.intended_s for row in self.rows], services_s)
        return [time_s + self.delay_s for time_s in times_s]

    def predicted_s(self, cv: float, *, busier: float = 1.0) -> float:
        """E[R] in the long run; Unstable is raised if there is none. cv: of the service times.

        busier: how many times the rate is as high.
        """
        steady = self.queue.steady(busier * self.rate_per_s, self.busy_s, cv)
        return steady.response_time_s + self.delay_s

    def more_than_served_s(self, served_s: Sequence[float]) -> list[float]:
        """By how much each request took longer, from sending on, than in the queue as served.

        There it keeps a server for the time that was told and the turnaround, if that is known.
        """
        overhead_s = self.overhead_s or 0.0
        turn_s = turnaround_s(self.rows, overhead_s)
        delay_s = self.delay_s if turn_s is None else overhead_s - turn_s
        order = sorted(range(len(self.rows)), key=lambda n: self.rows[n].sent_s)
        replayed_s = self.queue.replayed_s(
            [self.rows[n].sent_s for n in order],
            [served_s[n] + self.delay_s - delay_s for n in order],
        )
        found = [row.closed_response_s - delay_s for row in self.rows]
        for n, time_s in zip(order, replayed_s, strict=True):
            found[n] -= time_s
        return found


def require_known(results: Results) -> None:
    """Raise ResultsError if a server in the tables has a name that only another version knows."""
    for table in (PLAN, REFUSED, DEMANDS, CLOSED):
        for line in results.rows_if_any(table):
            if line["server"] not in SERVERS:
                told = f"was measured by another version of the lab (it names {line['server']!r})"
                raise ResultsError(f"{results.folder} {told}; measure again")


def open_runs(results: Results) -> list[OpenRun]:
    """All runs with rows, accepted or rejected, by load as in the plan, even if one was resumed.

    The calibration after a run is the first after its rows.
    """
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    after, later = dict[str, str](), ""
    for name in reversed(list(rows)):
        after[name] = later
        later = name if name.startswith(CALIBRATION) else later
    return [
        OpenRun(
            **line.cells(),
            is_accepted=accepted.get(line.run, False),
            rows=sorted(rows[line.run], key=lambda row: row.index),
            before=rows[line.calibration][CALIBRATION_WARM_UP:],
            after=rows[after[line.run]][CALIBRATION_WARM_UP:],
        )
        for of_load in grouped(results.lines(PLAN, RunLine), lambda line: line.key).values()
        for line in of_load
        if rows[line.run]
    ]
