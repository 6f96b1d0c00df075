"""Explores the service before its open runs: what a request demands, and how many it can answer.

One customer asks for some time, whose answers tell the demands of a request (`demands`). Closed
runs of several customers tell the highest throughput, from which the rates of open runs come: with
several workers it is not 1/E[S], and not known to be that times their number.
"""

from dataclasses import dataclass
from itertools import count

from loadtests.experiments.open_workload import demands as learnt
from loadtests.experiments.open_workload.servers import Measured
from loadtests.generation.calibration import Calibration
from loadtests.generation.run import Target, closed_run, judge_run
from loadtests.generation.schedule import Choices
from loadtests.lab.experiment import Run
from loadtests.lab.one_customer import one_customer
from loadtests.lab.repeated import rows_by_run, unused_name
from loadtests.machine import moment
from loadtests.models.open_queue import ONE, Queue

REQUESTS, QUICK_REQUESTS = 200, 60
WARM_UP, MOST_LEARNINGS = 10, 3
CUSTOMERS, QUICK_CUSTOMERS = (1, 2, 4, 8), (1, 4)
CLOSED_S, QUICK_CLOSED_S = 20.0, 4.0


@dataclass(frozen=True, slots=True)
class Rated:
    """A server whose queue and L are known.

    busy_workers: L·E[S], how many requests are served at once when all workers are busy. front_s:
    the part of E[S] that keeps a worker busy although the server does not report it; None: all.
    """

    queue: Queue = ONE
    busy_workers: float = 1.0
    front_s: float | None = None

    def delay_s(self, found: Calibration) -> float:
        """The part of E[S] that keeps no worker from serving others."""
        if self.front_s is None:
            return 0.0
        return max(0.0, (found.overhead_s or 0.0) - self.front_s)


def explored(run: Run, found: Measured, server: str, asked: Choices, before: Calibration) -> Rated:
    """Make the closed runs and learn the demands, as far as the results lack them."""
    results = run.results
    customers = QUICK_CUSTOMERS if run.options.quick else CUSTOMERS
    lines = results.lines_if_any(learnt.CLOSED, learnt.ClosedLine)
    known = {(line.server, line.customers) for line in lines}
    for number in customers:
        if (server, number) not in known:
            _closed(run, found.target, server, asked, number, before)
    highest_per_s = _highest_per_s(run, server, before)
    queue = found.queue or Queue(workers(highest_per_s, before))
    for _ in range(MOST_LEARNINGS):
        if server not in learnt.demands(results):
            learn(run, found, server, queue)
    of = learnt.demands(results).get(server)
    return Rated(queue, highest_per_s * before.mean_s, of.front_s if of else 0.0)


def workers(highest_per_s: float, found: Calibration) -> int:
    """How many workers give this throughput, if each is busy for the time that the server reports.

    E[S] as a customer sees it would give more of them: while a request is on its way, its worker
    serves others.
    """
    return max(1, round(highest_per_s * (found.mean_s - (found.overhead_s or 0.0))))


def _highest_per_s(run: Run, server: str, before: Calibration) -> float:
    """The highest throughput of the closed runs, rejected ones too: it only chooses the rates."""
    rows = rows_by_run(run.results)
    found = (
        learnt.throughput_per_s(rows[line.run])
        for line in run.results.lines_if_any(learnt.CLOSED, learnt.ClosedLine)
        if line.server == server
    )
    return max((x.estimate for x in found if x is not None), default=1 / before.mean_s)


def _closed(
    run: Run, target: Target, server: str, asked: Choices, customers: int, before: Calibration
) -> None:
    name = f"closed-{server}-{customers}"
    run.say(f"{server}, closed, customers: {customers}")
    record = closed_run(
        target,
        asked,
        customers=customers,
        duration_s=run.choose(QUICK_CLOSED_S, CLOSED_S),
        run=name,
        folder=run.results.folder,
        seed=run.options.seed,
        say=lambda text: None,
    )
    judge_run(run.results.folder, record, record.facts(before))
    with run.results.more(learnt.CLOSED, learnt.ClosedLine) as table:
        table.add(learnt.ClosedLine(name, server, customers))


def learn(run: Run, found: Measured, server: str, queue: Queue, pause_s: float = 0.0) -> None:
    """Let one customer ask, and note the processor time of the service for each request.

    server: the name under which `demands` has them. pause_s: mean time, exponentially distributed,
    for which the customer leaves the service idle before each request.
    """
    target = found.target
    name = unused_name(run.results, f"demands-{server}")
    run.say(f"{server}: what one request demands")
    requests = run.choose(QUICK_REQUESTS, REQUESTS)
    pauses = run.random(f"{name} pauses")
    pauses_s = (pause_s * pauses.expovariate(1.0) for _ in count())
    begun = moment(target.pid)
    with one_customer(run.results) as customer:
        asked = found.requests(run.random(name))
        made = customer.asks(
            target, name, asked, warm_up=WARM_UP, least=requests, pauses_s=pauses_s
        )
    used = begun.until(moment(target.pid))
    cpu_s = None if target.pid is None else used.server_s / len(made)
    with run.results.more(learnt.DEMANDS, learnt.DemandsLine) as table:
        table.add(learnt.DemandsLine(name, server, WARM_UP, queue.servers, cpu_s))
