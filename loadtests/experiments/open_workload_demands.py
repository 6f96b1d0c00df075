"""Learns the demands of a request on the service from one customer, and predicts closed runs.

With one customer nobody waits, so the time of a request is the sum of its demands, which the
answer's Server-Timing tells. What the worker's processor spends beside the handler (accepting,
HTTP) is known from the system's accounts, if the service is on this machine; the rest is on its
way, and keeps no worker from serving others. Mean value analysis predicts from these demands the
throughput of N customers, and as served: with the mean time in the handler and the turnaround of
that run itself, so that a machine which changed its speed is not taken for an error of the model.

Closed runs of several customers tell the highest throughput, from which the rates of open runs
come: with several workers it is not 1/E[S], and not known to be that times their number.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from statistics import fmean

from loadtests.experiments.open_workload_loads import CLOSED, DEMANDS, SERVERS
from loadtests.experiments.open_workload_servers import Measured
from loadtests.generation.calibration import Calibration, turnaround_s
from loadtests.generation.rows import Row, Window, closed_window
from loadtests.generation.run import judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.one_customer import Recorded, one_customer, recorded
from loadtests.lab.repeated import recorded_runs, rows_by_run, unused_name
from loadtests.lab.results import Line, Results
from loadtests.machine import moment
from loadtests.models import mva
from loadtests.models.estimates import BATCHES, Interval, Verdict, batch_means, verdict
from loadtests.models.laws import DELAY, Station
from loadtests.models.open_queue import Queue
from loadtests.processes import ProgramFailed

ENGINE = ("index", "decompress", "hash", "decode", "filter")  # the index, or stages of a scan
FILES = ("file", "emulated")
LEAST_ANSWERS = 2 * BATCHES

REQUESTS, QUICK_REQUESTS = 200, 60
WARM_UP, TRIES = 10, 3
CUSTOMERS, QUICK_CUSTOMERS = (1, 2, 4, 8), (1, 4)
CLOSED_S, QUICK_CLOSED_S = 20.0, 4.0
SLOW_S = 0.1  # E[S] from which as little is explored within given minutes as in a quick run


@dataclass(frozen=True, slots=True)
class DemandsLine(Line):
    """Lists a run of one customer. warm_up: its first requests, which do not count.

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
    """Lists a run of customers who ask again at once."""

    run: str
    server: str
    customers: int


@dataclass(frozen=True, slots=True)
class Demands:
    """Holds the mean demands of `requests` on a server, in s, and how its workers serve.

    engine_s: of the index or the scan. files_s: of files. other_s: of all else in the handler.
    front_s: of the worker's processor beside the handler. network_s: all else, as a client sees it,
    which keeps no worker busy.
    """

    engine_s: float
    files_s: float
    other_s: float
    front_s: float
    network_s: float
    server: str
    queue: Queue
    requests: int

    @property
    def handler_s(self) -> float:
        """Return the time in the handler, which the server reports."""
        return self.engine_s + self.files_s + self.other_s

    @property
    def busy_s(self) -> float:
        """Return the time for which a request keeps a worker busy."""
        return self.handler_s + self.front_s

    def as_served(self, rows: Sequence[Row]) -> "Demands":
        """Return the demands with the time in the handler and the turnaround of these requests."""
        times_s = [row.service_s for row in rows if row.service_s is not None]
        other_s = self.other_s + (fmean(times_s) - self.handler_s if times_s else 0.0)
        turn_s = turnaround_s(rows, self.front_s + self.network_s)
        front_s = self.front_s if turn_s is None else turn_s
        network_s = max(0.0, self.network_s + self.front_s - front_s)
        return replace(self, other_s=other_s, front_s=front_s, network_s=network_s)

    def solved(self, customers: int) -> mva.Solution:
        """Solve the network of the workers and the way to them by mean value analysis."""
        network = Station("network", self.network_s, DELAY)
        workers = Station("workers", self.busy_s, self.queue.servers)
        return mva.solve([workers, network], customers)[-1]


@dataclass(frozen=True, slots=True)
class Closed:
    """Compares a run of customers who ask again at once with what their demands predict."""

    demands: Demands
    customers: int
    window: Window
    throughput_per_s: Interval

    @property
    def predicted(self) -> mva.Solution:
        """Return the prediction by mean value analysis from one customer."""
        return self.demands.solved(self.customers)

    @property
    def served_per_s(self) -> float:
        """Return the throughput by mean value analysis as served, in 1/s."""
        return self.demands.as_served(self.window.rows).solved(self.customers).throughput_per_s

    @property
    def difference(self) -> Interval:
        """Return the measured throughput less that as served."""
        return self.throughput_per_s.plus(-self.served_per_s)

    @property
    def verdict(self) -> Verdict:
        """Tell whether the throughput is that as served, within the tolerance."""
        return verdict(self.difference, self.served_per_s)


# --- what was learnt -----------------------------------------------------------------------------


def demands_by_server(results: Results) -> dict[str, Demands]:
    """Return the demands on each server, from its last run that counts."""
    runs = recorded(results, DEMANDS, DemandsLine)
    return {run.line.server: _demands(run.line, run) for run in runs if run.is_accepted}


def _demands(line: DemandsLine, run: Recorded[DemandsLine]) -> Demands:
    def mean_s(names: Sequence[str]) -> float:
        return fmean([sum(map(request.duration_s, names)) for request in run.requests])

    response_s = fmean(run.times_s)
    total_s = mean_s(["total"]) or response_s  # of a server that does not tell, all keeps it busy
    engine_s, files_s = mean_s(ENGINE), mean_s(FILES)
    front_s = min(max(0.0, (line.server_cpu_s or 0.0) - total_s), response_s - total_s)
    other_s, network_s = max(0.0, total_s - engine_s - files_s), response_s - total_s - front_s
    queue, requests = Queue(line.servers), len(run.requests)
    return Demands(engine_s, files_s, other_s, front_s, network_s, line.server, queue, requests)


def closed_points(results: Results) -> list[Closed]:
    """Return the accepted closed runs that are long enough, with the demands of their servers."""
    demands = demands_by_server(results)
    return [
        Closed(demands[line.server], line.customers, closed_window(rows), x)
        for line, rows in recorded_runs(results, CLOSED, ClosedLine)
        if line.server in demands
        if (x := throughput_per_s(rows)) is not None
    ]


def throughput_per_s(rows: Sequence[Row]) -> Interval | None:
    """Return X of a closed run, by batches of times between answers; None for too few of them.

    There is none either if the server failed before all customers were at work.
    """
    done_s = list[float]()
    with suppress(ValueError):
        done_s += [row.done_s for row in closed_window(rows).rows]
    if len(done_s) <= LEAST_ANSWERS:
        return None
    gap_s = batch_means([later - sooner for sooner, later in pairwise(done_s)])
    x = 1 / gap_s.estimate
    return Interval(x, x * x * gap_s.half_width, gap_s.values)


# --- learning ------------------------------------------------------------------------------------


def explore(run: Run, subject: Measured, server: str, before: Calibration) -> tuple[float, float]:
    """Make the closed runs and learn the demands, as far as the results lack them.

    before: the calibration from which their lengths come. Returns L·E[S], how many requests are
    served at once when all workers are busy; and how much of E[S] (s) may keep a worker busy
    although the server does not report it.
    """
    results = run.results
    lines = results.lines_if_any(CLOSED, ClosedLine)
    made = {line.customers for line in lines if line.server == server}
    customer_counts, requests = amounts(run, before)
    for customers in customer_counts:
        if customers not in made:
            _measure_closed(run, subject, server, customers, before)
    rows = rows_by_run(results)
    xs_per_s = [  # of rejected runs, too: they only choose the rates
        x.estimate
        for line in results.lines_if_any(CLOSED, ClosedLine)
        if line.server == server and (x := throughput_per_s(rows[line.run])) is not None
    ]
    highest_per_s = max(xs_per_s, default=1 / before.mean_s)
    for attempt in range(1, TRIES + 1):
        if server not in demands_by_server(results):
            run.say(f"{SERVERS[server]}: what one request demands, attempt {attempt} of {TRIES}")
            _learn_demands(run, subject, server, requests)
    demands = demands_by_server(results).get(server)
    return highest_per_s * before.mean_s, demands.front_s if demands else 0.0


def amounts(run: Run, before: Calibration) -> tuple[Sequence[int], int]:
    """Return numbers of customers of closed runs, and of requests that demands are learnt from."""
    is_short_of_time = run.options.minutes is not None and before.mean_s > SLOW_S
    if run.options.quick or is_short_of_time:
        return QUICK_CUSTOMERS, QUICK_REQUESTS
    return CUSTOMERS, REQUESTS


def _measure_closed(
    run: Run, subject: Measured, server: str, customers: int, before: Calibration
) -> None:
    name = unused_name(run.results, f"closed-{server}-{customers}")
    run.say(f"{SERVERS[server]}, closed, customers: {customers}")
    at_once = min(customers, subject.queue.servers)
    is_brief = run.options.quick or run.options.minutes is not None
    length_s = QUICK_CLOSED_S if is_brief else CLOSED_S
    enough = 2 * LEAST_ANSWERS / customers  # as those at the beginning and the end do not count
    requests = ceil(max(enough, length_s * at_once / before.mean_s / customers))
    choices = subject.choices(run.random(name), customers * requests)
    given = subject.target, choices, name
    record = run.generator.closed(*given, customers=customers, requests=requests, each_once=True)
    judge_run(run.results.folder, record, record.facts(before))
    if not any(row.succeeded for row in record.rows[-customers:]):
        raise ProgramFailed(f"{name}: its last requests were not answered; does the server run?")
    with run.results.more(CLOSED, ClosedLine) as table:
        table.add(ClosedLine(name, server, customers))


def _learn_demands(run: Run, subject: Measured, server: str, requests: int) -> None:
    """Let one customer ask, and note the processor time of the service for each request."""
    target, name = subject.target, unused_name(run.results, f"demands-{server}")
    begun = moment(target.pid)
    with one_customer(run.results) as customer:
        questions = subject.requests(run.random(name))
        rows = customer.asks(target, name, questions, warm_up=WARM_UP, least=requests)
    used = begun.until(moment(target.pid))
    cpu_s = None if target.pid is None else used.server_s / len(rows)
    with run.results.more(DEMANDS, DemandsLine) as table:
        table.add(DemandsLine(name, server, WARM_UP, subject.queue.servers, cpu_s))
