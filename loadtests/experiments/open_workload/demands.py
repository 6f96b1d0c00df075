"""Predicts the service from one customer: demands on its stations, and closed runs to test them.

With one customer nobody waits, so the time of a request is the sum of its demands. The answer's
Server-Timing tells them: what the index or a scan's stages take, reading files, and the rest of the
handler. What the worker's processor spends beside the handler (accepting, HTTP) is known from the
system's accounts, if the service is on this machine; the rest is on its way, and keeps no worker
from serving others. Mean value analysis predicts from these demands the throughput of N customers,
and as served: with the mean time in the handler and the turnaround (`generation.calibration`) of
that run itself, so that a machine which changed its speed meanwhile is not taken for an error of
the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from loadtests.generation.calibration import turnaround_s
from loadtests.generation.rows import Row
from loadtests.generation.window import closed_window
from loadtests.grouping import grouped
from loadtests.lab.one_customer import Recorded, recorded
from loadtests.lab.repeated import accepted_by_run, rows_by_run
from loadtests.lab.results import Line, Results
from loadtests.models import mva
from loadtests.models.estimates import BATCHES, Interval, Verdict, batch_means, verdict
from loadtests.models.laws import DELAY, Station
from loadtests.models.open_queue import Queue

DEMANDS, CLOSED = "demands", "closed"
ENGINE = ("index", "decompress", "hash", "decode", "filter")  # the index, or stages of a scan
FILES = ("file", "emulated")
LEAST_ANSWERS = 2 * BATCHES


@dataclass(frozen=True, slots=True)
class DemandsLine(Line):
    """A run of one customer. warm_up: its first requests, which do not count.

    servers: how many workers it has, by the model. server_cpu_s: processor time of the service for
    each request; None if it is on another machine.
    """

    run: str
    server: str
    warm_up: int
    servers: int
    server_cpu_s: float | None


@dataclass(frozen=True, slots=True)
class ClosedLine(Line):
    """A run of customers who ask again at once."""

    run: str
    server: str
    customers: int


@dataclass(frozen=True, slots=True)
class Demands:
    """The mean demands of `requests` on a server, in seconds, and how one of its workers serves.

    engine_s: of the index or the scan. files_s: of files. rest_s: of the rest of the handler.
    front_s: of the worker's processor beside the handler. network_s: all else, as a client sees it,
    which keeps no worker busy.
    """

    engine_s: float
    files_s: float
    rest_s: float
    front_s: float
    network_s: float
    server: str
    queue: Queue
    requests: int

    @property
    def busy_s(self) -> float:
        """The time for which a request keeps a worker busy."""
        return self.handler_s + self.front_s

    @property
    def handler_s(self) -> float:
        """The time in the handler, which the server tells."""
        return self.engine_s + self.files_s + self.rest_s

    def as_served(self, rows: Sequence[Row]) -> "Demands":
        """The demands with the time in the handler, and the turnaround, of these requests."""
        told_s = [row.service_s for row in rows if row.service_s is not None]
        rest_s = self.rest_s + (fmean(told_s) - self.handler_s if told_s else 0.0)
        turn_s = turnaround_s(rows, self.front_s + self.network_s)
        front_s = self.front_s if turn_s is None else turn_s
        network_s = max(0.0, self.network_s + self.front_s - front_s)
        return replace(self, rest_s=rest_s, front_s=front_s, network_s=network_s)

    @property
    def stations(self) -> list[Station]:
        """The demands as a network: the workers, and the way to them and back."""
        network = Station("network", self.network_s, DELAY)
        return [Station("workers", self.busy_s, self.queue.servers), network]


@dataclass(frozen=True, slots=True)
class Closed:
    """Customers who ask again at once.

    throughput_per_s: measured. predicted: by MVA from one customer. served_per_s: the throughput by
    MVA as served.
    """

    server: str
    customers: int
    is_accepted: bool
    throughput_per_s: Interval
    response_s: float
    predicted: mva.Solution
    served_per_s: float

    @property
    def difference(self) -> Interval:
        """The measured throughput less that by MVA as served."""
        return self.throughput_per_s.plus(-self.served_per_s)

    @property
    def verdict(self) -> Verdict:
        """Whether the throughput is as by MVA as served, within the tolerance."""
        return verdict(self.difference, self.served_per_s)


def demands(results: Results) -> dict[str, Demands]:
    """The demands by server, from its last run that counts; none if no service was measured."""
    return {server: runs[-1][0] for server, runs in learnt(results).items()}


def learnt(results: Results) -> dict[str, list[tuple[Demands, Recorded]]]:
    """The runs of one customer by server, as far as they count, each with the demands it tells."""
    lines = results.lines_if_any(DEMANDS, DemandsLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    known = [line for line in lines if line.run in runs and runs[line.run].is_accepted]
    return {
        server: [(_demands(line, runs[line.run]), runs[line.run]) for line in of_server]
        for server, of_server in grouped(known, lambda line: line.server).items()
    }


def _demands(line: DemandsLine, run: Recorded) -> Demands:
    def mean_s(names: Sequence[str]) -> float:
        return fmean([sum(map(one.duration_s, names)) for one in run.asked])

    total_s, response_s = mean_s(["total"]), fmean(run.times_s)
    engine_s, files_s = mean_s(ENGINE), mean_s(FILES)
    front_s = min(max(0.0, (line.server_cpu_s or 0.0) - total_s), response_s - total_s)
    return Demands(
        engine_s=engine_s,
        files_s=files_s,
        rest_s=max(0.0, total_s - engine_s - files_s),
        front_s=front_s,
        network_s=response_s - total_s - front_s,
        server=line.server,
        queue=Queue(line.servers),
        requests=len(run.asked),
    )


def closed_points(results: Results) -> list[Closed]:
    """The closed runs that are long enough, accepted or rejected, each with its prediction."""
    rows, accepted, known = rows_by_run(results), accepted_by_run(results), demands(results)
    found = []
    for line in results.lines_if_any(CLOSED, ClosedLine):
        of, x = known.get(line.server), throughput_per_s(rows[line.run])
        if of is not None and x is not None:
            window = closed_window(rows[line.run])
            predicted, as_served = (
                mva.solve(one.stations, line.customers)[-1]
                for one in (of, of.as_served(window.rows))
            )
            found.append(
                Closed(
                    server=of.server,
                    customers=line.customers,
                    is_accepted=accepted.get(line.run, False),
                    throughput_per_s=x,
                    response_s=window.mean_response_s,
                    predicted=predicted,
                    served_per_s=as_served.throughput_per_s,
                )
            )
    return found


def throughput_per_s(rows: Sequence[Row]) -> Interval | None:
    """X of a closed run, by batches of the times between answers; None for too few of them."""
    if len(rows) <= LEAST_ANSWERS:
        return None
    done_s = [row.done_s for row in closed_window(rows).rows]
    if len(done_s) <= LEAST_ANSWERS:
        return None
    gap_s = batch_means([later - sooner for sooner, later in pairwise(done_s)])
    x = 1 / gap_s.estimate
    return Interval(x, x * gap_s.relative_half_width, gap_s.values)
