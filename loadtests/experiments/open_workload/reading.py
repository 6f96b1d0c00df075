"""Reads the tables of a result: its runs, with arrivals, service times and response times.

Times of a request, all in its row, in seconds since the run's start: `intended_s`, when it was to
arrive; `sent_s`; `server_start_s`, if the server shares the generator's clock; `done_s`; and
`service_s`, the time that the server measured. A run has besides what was calibrated before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from statistics import fmean

from loadtests.experiments.open_workload.plan import LoadKey, is_as_served, warm_up
from loadtests.generation.calibrating import WARM_UP as CALIBRATION_WARM_UP
from loadtests.generation.calibration import turnaround_s
from loadtests.generation.rows import Row
from loadtests.grouping import grouped
from loadtests.lab.experiment import Mode
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Line, Results
from loadtests.models.estimates import BATCHES, without_warm_up
from loadtests.models.open_queue import Queue

PLAN = "plan"


@dataclass(frozen=True, slots=True)
class RunLine(Line):
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

    @property
    def key(self) -> LoadKey:
        """The load of which this is a run."""
        return self.server, self.part, self.fraction


LEAST_SETTLED = BATCHES  # requests after the warm-up, one for each batch
MOST_UNTOLD = 0.01  # share of the requests without a service time; those get the mean


@dataclass(frozen=True)
class OpenRun(RunLine):
    """A run with its rows in order of arrival.

    calibrated_s: the response times of the calibration, if they are known.
    """

    is_accepted: bool
    calibrated_s: Sequence[float]
    rows: Sequence[Row]

    @property
    def unit(self) -> str:
        """The replication to which it belongs: runs that share a calibration share its error.

        It is the calibration, or the run itself if E[S] was not measured but given.
        """
        return self.calibration or self.run

    @property
    def is_as_served(self) -> bool:
        """Whether it is judged by the times that requests took in it."""
        return is_as_served(self.server, self.overhead_s)

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
        return self.rate_per_s * self.busy_s / self.queue.servers

    @property
    def cv(self) -> float:
        """The coefficient of variation of the time in the server, as it was calibrated."""
        return float(self.service_variance_s2**0.5 / self.busy_s)

    @property
    def arrivals_s(self) -> list[float]:
        """The intended arrival times."""
        return [row.intended_s for row in self.rows]

    @property
    def responses_s(self) -> list[float]:
        """Response times, from the intended arrival."""
        return [row.open_response_s for row in self.rows]

    @property
    def lags_s(self) -> list[float]:
        """How late each request was sent."""
        return [row.lag_s for row in self.rows]

    @property
    def is_long_enough(self) -> bool:
        """Whether enough requests are left without the warm-up."""
        return len(self.rows) >= warm_up(self.fraction) + LEAST_SETTLED

    def settled(self, values: Sequence[float]) -> Sequence[float]:
        """`values`, one for each request, without those of the warm-up.

        Raises ValueError if none is left.
        """
        return without_warm_up(values, warm_up(self.fraction))

    @cached_property
    def served_s(self) -> list[float] | None:
        """The time that each request kept the server, as the server measured it.

        None if it did not tell.
        """
        told = [row.service_s for row in self.rows]
        if self.overhead_s is None:
            return None
        if sum(time_s is None for time_s in told) > MOST_UNTOLD * len(told):
            return None
        more_s = self.overhead_s - self.delay_s
        return [self.busy_s if time_s is None else time_s + more_s for time_s in told]

    def drawn_s(self) -> list[float]:
        """A time from the calibration for each request, always the same ones for the same run."""
        times_s = [max(0.0, time_s - self.delay_s) for time_s in self.calibrated_s]
        random = Random(self.run)  # noqa: S311  no secrets
        return random.choices(times_s or [self.busy_s], k=len(self.rows))

    def replayed_s(self, services_s: Sequence[float]) -> list[float]:
        """Response times of the same arrivals in the queue of the model."""
        times_s = self.queue.replayed_s(self.arrivals_s, services_s)
        return [time_s + self.delay_s for time_s in times_s]

    def more_than_served_s(self) -> list[float] | None:
        """By how much each request took longer, from sending on, than in the queue as served.

        There it keeps a server for the time that was told and the turnaround, or if that is not
        known, for all that it keeps it by the model. None if the server did not tell the times.
        """
        if self.served_s is None or self.overhead_s is None:
            return None
        turn_s = turnaround_s(self.rows, self.overhead_s)
        delay_s = self.delay_s if turn_s is None else self.overhead_s - turn_s
        kept_s = [time_s + self.delay_s - delay_s for time_s in self.served_s]
        order = sorted(range(len(self.rows)), key=lambda n: self.rows[n].sent_s)
        replayed_s = self.queue.replayed_s(
            [self.rows[n].sent_s for n in order], [kept_s[n] for n in order]
        )
        found = [row.closed_response_s - delay_s for row in self.rows]
        for n, time_s in zip(order, replayed_s, strict=True):
            found[n] -= time_s
        return found


@dataclass(frozen=True, slots=True)
class Services:
    """The service times with which runs at one load are replayed, and their cv.

    is_served: they are those that the server measured. slower: their mean over the calibrated one.
    """

    of_runs: Sequence[Sequence[float]]
    cv: float
    is_served: bool
    slower: float


def services(runs: Sequence[OpenRun]) -> Services:
    """The service times for the replay of these runs, which are all at one load.

    Formula and replay must be of the same distribution, or its effect would be taken for one of the
    server. So a request has the time that the server measured, and if the server did not tell, one
    of the calibration's, drawn at random; never their mean.
    """
    served = [run.served_s for run in runs]
    known = [times_s for times_s in served if times_s is not None]
    if len(known) < len(runs):
        squares = fmean([run.cv**2 for run in runs])
        return Services([run.drawn_s() for run in runs], squares**0.5, False, 1.0)
    both = zip(runs, known, strict=True)
    shares = [time_s / run.busy_s for run, of_run in both for time_s in of_run]
    slower = fmean(shares)
    cv = fmean([(share / slower - 1) ** 2 for share in shares]) ** 0.5
    return Services(known, cv, True, slower)


def open_runs(results: Results) -> list[OpenRun]:
    """All runs with rows, accepted or rejected, ordered by load as in the plan.

    The order is the same if a load was resumed later.
    """
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    is_judged = results.manifest()["mode"] != Mode.MODEL
    lines = [line for line in results.lines(PLAN, RunLine) if rows[line.run]]
    return [
        _open_run(line, rows, accepted.get(line.run, not is_judged))
        for of_load in grouped(lines, lambda line: line.key).values()
        for line in of_load
    ]


def _open_run(line: RunLine, rows: Mapping[str, list[Row]], is_accepted: bool) -> OpenRun:
    calibration = rows[line.calibration][CALIBRATION_WARM_UP:] if line.calibration else []
    return OpenRun(
        **line.cells(),
        is_accepted=is_accepted,
        calibrated_s=[row.closed_response_s for row in calibration],
        rows=sorted(rows[line.run], key=lambda row: row.index),
    )
