"""Lets customers ask a service again at once, which shows L, and compares that with a model.

With one customer nobody waits. The part of that time that the service does not report is on the
way, and keeps no worker from serving others. Mean value analysis predicts from that the throughput
of N customers, for exponential times. It is judged by a simulation of as many workers, as served:
with the times in the handler of that run itself, so that neither regular times nor a machine which
changed its speed are taken for an error of the model.

The highest throughput is L, from which the rates of open runs come: with several workers it is not
1/E[S], and not known to be that times their number. There are customers enough to keep all workers
busy, although some of their requests are on the way.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from statistics import fmean

from loadtests.experiments.open_workload_loads import SERVERS
from loadtests.experiments.open_workload_measurements import Measured
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row, Window, closed_window
from loadtests.generation.run import judge_run
from loadtests.lab.experiment import Run
from loadtests.lab.repeated import recorded_runs, rows_by_run, unused_name
from loadtests.lab.results import Line, Results
from loadtests.models import mva, replay
from loadtests.models.estimates import BATCHES, Interval, Verdict, batch_means, verdict
from loadtests.models.laws import DELAY, Station
from loadtests.processes import ProgramFailed

CLOSED = "closed"
LEAST_ANSWERS = 2 * BATCHES
CUSTOMERS, FEW_CUSTOMERS = (1, 2, 4, 8), (1, 4)
MOST_CUSTOMERS = 64
CLOSED_S = 4.0
SLOW_S = 0.1  # E[S] from which there are few numbers of customers


@dataclass(frozen=True, slots=True)
class ClosedLine(Line):
    """Lists a run of customers who ask again at once, and what was calibrated before it.

    servers: how many workers the service has. service_time_s: E[S]. network_s: the part of it that
    the service did not report; 0 if it reported nothing.
    """

    run: str
    server: str
    customers: int
    servers: int
    service_time_s: float
    network_s: float


@dataclass(frozen=True, slots=True)
class Closed:
    """Compares a closed run with what one customer lets expect."""

    line: ClosedLine
    window: Window
    throughput_per_s: Interval

    @property
    def predicted(self) -> mva.Solution:
        """Return the prediction by mean value analysis from one customer."""
        busy_s = self.line.service_time_s - self.line.network_s
        workers = Station("workers", busy_s, self.line.servers)
        network = Station("network", self.line.network_s, DELAY)
        return mva.solve([workers, network], self.line.customers)[-1]

    @property
    def served_per_s(self) -> float:
        """Return the throughput of as many simulated workers as served, in 1/s."""
        customers, network_s = self.line.customers, self.line.network_s
        times_s = [row.service_s for row in self.window.rows if row.service_s is not None]
        if len(times_s) <= customers:
            return self.predicted.throughput_per_s
        begun_s, ways_s = [0.0] * customers, [[network_s] * len(times_s)] * customers
        responses_s = replay.closed(begun_s, ways_s, times_s, self.line.servers)
        return customers / (network_s + fmean(responses_s[customers:]))  # without their start

    @property
    def difference(self) -> Interval:
        return self.throughput_per_s.plus(-self.served_per_s)

    @property
    def verdict(self) -> Verdict:
        """Tell whether the throughput is that as served, within the tolerance."""
        return verdict(self.difference, self.served_per_s)


def closed_points(results: Results) -> list[Closed]:
    return [
        Closed(line, closed_window(rows), x)
        for line, rows in recorded_runs(results, CLOSED, ClosedLine)
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


# --- measuring -----------------------------------------------------------------------------------


def saturated(run: Run, subject: Measured, server: str, before: Calibration) -> float:
    """Make the closed runs that the results lack. Returns L·E[S], by all of them.

    That is how many requests are served at once when all workers are busy. before: the calibration
    from which the numbers of customers and the lengths of runs come.
    """
    results = run.results
    made = {line.customers for line in _lines(results, server)}
    for customers in numbers_of_customers(subject.queue.servers, before):
        if customers not in made:
            _measure(run, subject, server, customers, before)
    rows = rows_by_run(results)
    xs_per_s = [  # of rejected runs, too: they only choose the rates
        x.estimate
        for line in _lines(results, server)
        if (x := throughput_per_s(rows[line.run])) is not None
    ]
    return max(xs_per_s, default=1 / before.mean_s) * before.mean_s


def numbers_of_customers(workers: int, alone: Calibration) -> list[int]:
    """Return the numbers of customers of closed runs.

    The last is twice as many as keep all workers busy while others are on the way, or more.
    """
    numbers = FEW_CUSTOMERS if alone.mean_s > SLOW_S else CUSTOMERS
    busy = 1 - max(0.0, alone.overhead_s or 0.0) / alone.mean_s
    enough = round(min(2 * workers / busy, MOST_CUSTOMERS)) if busy > 0 else MOST_CUSTOMERS
    return sorted({*numbers, max(enough, *numbers)})


def _lines(results: Results, server: str) -> list[ClosedLine]:
    return [line for line in results.lines_if_any(CLOSED, ClosedLine) if line.server == server]


def _measure(run: Run, subject: Measured, server: str, customers: int, before: Calibration) -> None:
    name = unused_name(run.results, f"closed-{server}-{customers}")
    run.say(f"{SERVERS[server]}, closed, customers: {customers}")
    servers = subject.queue.servers
    enough = 2 * LEAST_ANSWERS / customers  # as those at the beginning and the end do not count
    in_time = CLOSED_S * min(customers, servers) / before.mean_s / customers
    requests = ceil(max(enough, in_time))
    choices = subject.choices(run.random(name), customers * requests)
    given = subject.target, choices, name
    record = run.generator(is_quiet=True).closed(
        *given, customers=customers, requests=requests, each_once=True
    )
    judge_run(run.results.folder, record, record.facts(before))
    if not any(row.succeeded for row in record.rows[-customers:]):
        raise ProgramFailed(f"{name}: its last requests were not answered; does the server run?")
    calibrated = before.mean_s, before.overhead_s or 0.0
    with run.results.more(CLOSED, ClosedLine) as table:
        table.add(ClosedLine(name, server, customers, servers, *calibrated))
