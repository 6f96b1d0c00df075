"""Measures the three servers in turns for each number of customers, then the time of a block.

A rejected run is made once more, except in a quick run.

Beside the raw rows, `plan.csv` has a line for each closed run, and `told.csv` the times that the
server reported for each interaction, in the order in which they ended. The real part writes
`scans.csv`, a line for each server that scanned, and `block_reads.csv`, the seconds of reading and
checking each block in the study's way. The mode `model` has no server: a simulated network gives
the rows. At the end many runs like these are simulated, as predictions: `simulated.csv` has a line
for each.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import repeat
from math import ceil
from random import Random
from time import perf_counter

from loadtests.baseline import StudyLedger
from loadtests.experiments.queueing_network.plan import SERVERS, WARM_UP, Plan, Server, plan_of
from loadtests.experiments.queueing_network.predicting import STATIONS, solved
from loadtests.experiments.queueing_network.simulating import simulated_results
from loadtests.generation.rows import Row, RowFile, closed_index
from loadtests.generation.run import REQUESTS, closed_run, judge_run
from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Mode, Run
from loadtests.lab.ledgers import TwoChains, two_chains
from loadtests.lab.one_customer import one_customer
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.results import Line, TableWriter
from loadtests.models.closed_network import Round, Visit, simulated
from loadtests.models.random_times import with_mean_and_cv
from loadtests.processes import Service
from loadtests.servers import network, study
from loadtests.servers.network import Station

PLAN, TOLD, SCANS, BLOCK_READS = "plan", "told", "scans", "block_reads"
SIMULATED = "simulated"
SIMULATED_COLUMNS = ("server", "customers", "throughput_per_s", "response_s")


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """A closed run. group, report_s: as in `plan.Plan`.

    warm_up: first requests of each customer, which do not count.
    """

    run: str
    server: str
    customers: int
    scale: float
    think_s: float
    cv: float
    group: int
    warm_up: int
    report_s: float


LATE = "late"
TOLD_TIMES = (LATE, *STATIONS, *(f"{name}_queue" for name in STATIONS))
TOLD_COLUMNS = ("run", "number", *(f"{name}_s" for name in TOLD_TIMES))


@dataclass(frozen=True, slots=True)
class ScansLine(Line):
    """A run of scans by one storage. warm_up: the first ones, which do not count."""

    run: str
    storage: str
    blocks: int
    warm_up: int


KIND = "interaction"
RUNS_A_REPEAT = 100  # simulated, at the least, for each run that is measured
STUDY, OURS, COUNTS = "study", "ours", "small"  # storages that scan


def measure(run: Run) -> None:
    """Measure by the quick or the full plan."""
    plan = plan_of(run.options)
    with (
        run.results.table(PLAN, PlanLine) as table,
        run.results.table(TOLD, TOLD_COLUMNS) as told,
    ):
        network = _Network(run, plan, table, told)
        if run.options.mode is Mode.MODEL:
            network.simulate()
        else:
            network.measure()
    if run.options.mode is not Mode.MODEL:
        _measure_blocks(run, plan)
    _predict(run, plan)


def _predict(run: Run, plan: Plan) -> None:
    """Simulate many runs of every server, to know what a single one should give.

    They are so many that their mean is known ten times as well as that of the measured runs.
    """
    runs = max(plan.simulated_runs, RUNS_A_REPEAT * (run.options.reps or 1))
    run.say(f"simulating {runs} runs of each server and N")
    seed = f"{run.options.seed} simulated"
    found = simulated_results(plan.populations, plan.report_s, plan.group, seed, runs)
    with run.results.table(SIMULATED, SIMULATED_COLUMNS) as table:
        for (server, customers), results in found.items():
            for one in results:
                table.write(server=server.name, customers=customers, **asdict(one))


# --- the network ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Network:
    """Makes the closed runs. table, told: where they are listed, and what the server reports."""

    run: Run
    plan: Plan
    table: TableWriter
    told: TableWriter

    def measure(self) -> None:
        """Make the runs of real servers, all servers in turns."""
        run, plan = self.run, self.plan
        with ExitStack() as stack:
            services = {server: stack.enter_context(self._running(server)) for server in SERVERS}
            for customers in plan.populations:
                for server, service in services.items():
                    run.say(f"N = {customers}: {server.label}")
                    wanted, made = run.options.reps or 1, 0
                    for attempt in range(wanted * plan.most_attempts):
                        made += self._counts(server, service, customers, attempt)
                        if made == wanted:
                            break

    def _running(self, server: Server) -> AbstractContextManager[Service]:
        return network.running(
            self.run.log,
            emulated_disk=self.run.options.scale or 1.0,
            cv=server.cv,
            group=self.plan.group,
            threads=server.threads,
            seed=self.run.options.seed,
        )

    def _counts(self, server: Server, service: Service, customers: int, attempt: int) -> bool:
        """Make a closed run. Returns whether it counts."""
        options, folder = self.run.options, self.run.results.folder
        line = self._noted(server, customers, options.scale or 1.0, attempt)
        record = closed_run(
            service,
            {KIND: [Request(KIND, network.INTERACTION)]},
            customers=customers,
            run=line.run,
            folder=folder,
            think_s=line.think_s,
            duration_s=self.plan.report_s / line.scale,
            seed=options.seed + attempt,
            say=self.run.say,
        )
        self._write_told(line.run, service.get(network.TOLD))
        return judge_run(folder, record)

    def _noted(self, server: Server, customers: int, scale: float, attempt: int = 0) -> PlanLine:
        """Write a run's line of the plan."""
        plan = self.plan
        name = f"{server.name}-{customers:02}" + (f"-{attempt + 1}" if attempt else "")
        how = scale, NETWORK_THINK_S / scale, server.cv, plan.group, WARM_UP, plan.report_s
        line = PlanLine(name, server.name, customers, *how)
        self.table.add(line)
        return line

    def _write_told(self, run: str, interactions: Iterable[Mapping[str, float]]) -> None:
        for number, one in enumerate(interactions):
            times_s = {f"{name}_s": one[name] for name in TOLD_TIMES}
            self.told.write(run=run, number=number, **times_s)

    def simulate(self) -> None:
        """Make the runs in a simulated network, at K = 1."""
        plan = self.plan
        with closing(RowFile(self.run.results.folder / REQUESTS)) as rows:
            for customers in plan.populations:
                rounds = ceil(plan.report_s * solved(customers)[-1].throughput_per_s / customers)
                for server in SERVERS:
                    self.run.say(f"N = {customers}: {server.label}, simulated")
                    name = self._noted(server, customers, 1.0).run
                    count, random = rounds + WARM_UP, self.run.random(name)
                    found = simulated_rounds(server, customers, count, plan.group, random)
                    rows.write(as_rows(name, found))
                    self._write_told(name, [_as_told(one) for one in found])


def simulated_rounds(
    server: Server, customers: int, rounds: int, group: int, random: Random
) -> list[Round]:
    """Rounds of a simulation of `server`, with the route of `servers.network`."""
    cpu, disk, delay = (Station(name) for name in STATIONS)
    way = [
        Visit(step.station.name, with_mean_and_cv(step.mean_s, server.cv))
        for step in network.route(cpu, disk, delay, 1.0, group)
    ]
    is_single = server.threads == 1
    return simulated(way, customers, NETWORK_THINK_S, rounds, random, one_at_a_time=is_single)


def as_rows(run: str, rounds: Sequence[Round]) -> list[Row]:
    """Simulated rounds, in the order of their ends, as raw rows."""
    numbers: Counter[int] = Counter()
    found = []
    for one in rounds:
        index = closed_index(one.customer, numbers[one.customer])
        numbers[one.customer] += 1
        start_s, end_s = one.start_s, one.end_s
        service_s = end_s - start_s - one.door_s
        found.append(Row(run, index, KIND, start_s, start_s, None, end_s, service_s, 200, "model"))
    return found


def _as_told(one: Round) -> Mapping[str, float]:
    queues = {f"{name}_queue": queue_s for name, queue_s in one.queue_s.items()}
    return {**one.service_s, **queues, LATE: 0.0}


# --- what a block costs --------------------------------------------------------------------------


def _measure_blocks(run: Run, plan: Plan) -> None:
    """Scan real blocks without waits by both storages, and the study's small chain for counts."""
    chains = two_chains(run, plan.blocks)
    small = run.scratch / "small"
    study.write_small_chain(small)
    with (
        run.results.table(SCANS, ScansLine) as table,
        one_customer(run.results) as customer,
    ):

        def scan(storage: str, service: Service, path: str, blocks: int) -> None:
            run.say(f"scans, {storage}: {plan.scans} of {blocks} blocks")
            line = ScansLine(f"scan-{storage}", storage, blocks, WARM_UP)
            table.add(line)
            customer.asks(
                service,
                line.run,
                repeat(Request("flight_counter", path)),
                warm_up=WARM_UP,
                least=plan.scans,
                least_s=run.choose(0.5, 1),
            )

        asked = chains.questions["flight_counter"]
        with study.running(small, run.log) as service:
            scan(COUNTS, service, study.FLIGHT_COUNTER, study.BLOCKS)
        with study.running(chains.study, run.log) as service:
            scan(STUDY, service, asked.path, plan.blocks)
        with chains.scanned(run.log, plan.run_blocks) as service:
            scan(OURS, service, asked.scan_path, plan.blocks)
    _time_block_reads(run, chains)


def _time_block_reads(run: Run, chains: TwoChains) -> None:
    """Time reading each block but the newest; a cache of one block keeps none of them."""
    run.say(f"reading {chains.blocks - 1} blocks one by one")
    ledger = StudyLedger(chains.study, cached_blocks=1)
    with run.results.table(BLOCK_READS, ("height", "read_s")) as table:
        for height in range(chains.blocks - 1):
            start_s = perf_counter()
            ledger.block(height)
            table.write(height=height, read_s=perf_counter() - start_s)
