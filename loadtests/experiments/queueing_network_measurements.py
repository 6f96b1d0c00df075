"""Measures the three servers in turns for each number of customers, then the time of a block.

A rejected run is made once more, except in a quick run. Beside the raw rows, `plan.csv` has a line
for each closed run, and `told.csv` the times that the server reported for each interaction, in the
order in which they ended. The real part writes `scans.csv`, a line for each server that scanned,
and `block_reads.csv`, the seconds of reading and checking each block in the study's way. The mode
`model` has no server: a simulated network gives the rows, at K = 1. Before anything is measured,
many runs like these are simulated, as predictions: `simulated.csv` has a line for each.
"""

from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from itertools import product, repeat
from time import perf_counter

from loadtests.baseline import StudyLedger
from loadtests.experiments.queueing_network_models import (
    SERVERS,
    TIMES,
    WARM_UP,
    Server,
    simulated_results,
    simulated_rounds,
)
from loadtests.generation.rows import Row, RowFile, closed_index
from loadtests.generation.run import REQUESTS, Generator, judge_run
from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.ledgers import two_chains
from loadtests.lab.one_customer import one_customer
from loadtests.lab.published import BLOCKS, NETWORK_THINK_S
from loadtests.lab.results import Line, TableWriter
from loadtests.processes import Service
from loadtests.servers import network, study
from loadtests.servers.service import RUN_BLOCKS

SCALE, QUICK_SCALE = 100.0, 400.0
RUNS_A_REPEAT = 100  # simulated for each run, at the least: their mean is known ten times as well
KIND = "interaction"
STUDY, OURS, COUNTS = "study", "ours", "small"  # storages that scan

PLAN, TOLD, SCANS, BLOCK_READS = "plan", "told", "scans", "block_reads"
SIMULATED = "simulated"
SIMULATED_COLUMNS = ("server", "customers", "throughput_per_s", "response_s")
LATE = "late"
TOLD_TIMES = (LATE, *TIMES)
TOLD_COLUMNS = ("run", "number", *(f"{name}_s" for name in TOLD_TIMES))


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. populations: values of N. report_s: length of a run in report seconds.

    group: visits joined to one (`servers.network`). most_attempts: the most attempts at a closed
    run until one is accepted.

    blocks: length of the chains whose real blocks are read. run_blocks: blocks that our service
    reads at a miss. scans: of each storage that count. simulated_runs: of each server and N.
    """

    populations: tuple[int, ...]
    report_s: float
    group: int
    blocks: int
    run_blocks: int
    scans: int
    most_attempts: int = 1
    simulated_runs: int = 200


FULL = Plan(tuple(range(1, 11)), 4000, 1, BLOCKS, RUN_BLOCKS, scans=5, most_attempts=2)
QUICK = Plan((1, 2, 5), 1200, network.FILLED_BLOCKS, blocks=60, run_blocks=4, scans=3)


def plan_of(options: Options) -> Plan:
    """The plan for these options: about half an hour, or less than two minutes if quick."""
    plan = QUICK if options.quick else FULL
    chosen = tuple(n for n in plan.populations if n in options.loads)
    return replace(plan, populations=chosen) if options.loads else plan


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """A closed run. group, report_s: as in `Plan`. warm_up: first requests that do not count."""

    run: str
    server: str
    customers: int
    scale: float
    think_s: float
    cv: float
    group: int
    warm_up: int
    report_s: float


@dataclass(frozen=True, slots=True)
class ScansLine(Line):
    """A run of scans by one storage. warm_up: the first ones, which do not count."""

    run: str
    storage: str
    blocks: int
    warm_up: int


def measure(run: Run) -> None:
    """Measure by the quick or the full plan."""
    plan, is_model = plan_of(run.options), run.options.mode is Mode.MODEL
    _predict(run, plan)
    with (
        run.results.table(PLAN, PlanLine) as table,
        run.results.table(TOLD, TOLD_COLUMNS) as told,
    ):
        make_runs = _simulate if is_model else _measure_network
        make_runs(run, plan, table, told)
    if not is_model:
        _measure_blocks(run, plan)


def _predict(run: Run, plan: Plan) -> None:
    """Simulate many runs of every server, to know what a single one should give."""
    runs = max(plan.simulated_runs, RUNS_A_REPEAT * (run.options.reps or 1))
    run.say(f"simulating {runs} runs of each server and N")
    seed = f"{run.options.seed} simulated"
    found = simulated_results(plan.populations, plan.report_s, plan.group, seed, runs)
    with run.results.table(SIMULATED, SIMULATED_COLUMNS) as table:
        for (server, customers), results in found.items():
            for one in results:
                table.write(server=server.name, customers=customers, **asdict(one))


# --- the network ---------------------------------------------------------------------------------


def _line(plan: Plan, scale: float, server: Server, customers: int, attempt: int = 0) -> PlanLine:
    name = f"{server.name}-{customers:02}" + (f"-{attempt + 1}" if attempt else "")
    how = scale, NETWORK_THINK_S / scale, server.cv, plan.group, WARM_UP, plan.report_s
    return PlanLine(name, server.name, customers, *how)


def _measure_network(run: Run, plan: Plan, table: TableWriter, told: TableWriter) -> None:
    """Make the closed runs of real servers, all servers in turns."""
    options, scale = run.options, run.options.scale or 1.0
    with ExitStack() as stack:
        services = {
            server: stack.enter_context(
                network.running(
                    run.log,
                    emulated_disk=scale,
                    cv=server.cv,
                    group=plan.group,
                    threads=server.threads,
                    seed=options.seed,
                )
            )
            for server in SERVERS
        }
        for customers, server in product(plan.populations, SERVERS):
            run.say(f"N = {customers}: {server.label}")
            wanted, made = options.reps or 1, 0
            for attempt in range(wanted * plan.most_attempts):
                line = _line(plan, scale, server, customers, attempt)
                table.add(line)
                made += _counts(run, services[server], line, options.seed + attempt, told)
                if made == wanted:
                    break


def _counts(run: Run, service: Service, line: PlanLine, seed: int, told: TableWriter) -> bool:
    """Make a closed run. Returns whether it counts."""
    record = Generator(run.results.folder, seed, run.say).closed(
        service,
        {KIND: [Request(KIND, network.INTERACTION)]},
        line.run,
        customers=line.customers,
        think_s=line.think_s,
        duration_s=line.report_s / line.scale,
    )
    for number, one in enumerate(service.get(network.TOLD)):
        times_s = {f"{name}_s": one[name] for name in TOLD_TIMES}
        told.write(run=line.run, number=number, **times_s)
    return judge_run(run.results.folder, record)


def _simulate(run: Run, plan: Plan, table: TableWriter, told: TableWriter) -> None:
    """Make the closed runs in a simulated network."""
    found = simulated_rounds(plan.populations, plan.report_s, plan.group, str(run.options.seed))
    with closing(RowFile(run.results.folder / REQUESTS)) as rows:
        for customers, server in product(plan.populations, SERVERS):
            (rounds,) = found[server, customers]
            run.say(f"N = {customers}: {server.label}, simulated")
            line = _line(plan, 1.0, server, customers)
            table.add(line)
            seen: Counter[float] = Counter()
            of_customers = rounds[:, 1:].tolist()
            for number, (customer, start_s, end_s, *times_s) in enumerate(of_customers):
                index = closed_index(int(customer), seen[customer])
                seen[customer] += 1
                at_s = start_s, start_s, None, end_s, sum(times_s)
                rows.write([Row(line.run, index, KIND, *at_s, 200, "model")])
                cells = zip(TOLD_COLUMNS, (line.run, number, 0.0, *times_s), strict=True)
                told.write(**dict(cells))


# --- what a block costs --------------------------------------------------------------------------


def _measure_blocks(run: Run, plan: Plan) -> None:
    """Scan real blocks without waits by both storages, and the study's small chain for counts."""
    chains = two_chains(run, plan.blocks)
    small = run.scratch / "small"
    study.write_small_chain(small)
    asked = chains.questions["flight_counter"]
    ours = chains.scanned(run.log, plan.run_blocks)
    with (
        run.results.table(SCANS, ScansLine) as table,
        one_customer(run.results) as customer,
    ):
        for storage, server, path, blocks in (
            (COUNTS, study.running(small, run.log), study.FLIGHT_COUNTER, study.BLOCKS),
            (STUDY, study.running(chains.study, run.log), asked.path, plan.blocks),
            (OURS, ours, asked.scan_path, plan.blocks),
        ):
            run.say(f"scans, {storage}: {plan.scans} of {blocks} blocks")
            line = ScansLine(f"scan-{storage}", storage, blocks, WARM_UP)
            table.add(line)
            with server as service:
                customer.asks(
                    service,
                    line.run,
                    repeat(Request("flight_counter", path)),
                    warm_up=WARM_UP,
                    least=plan.scans,
                    least_s=run.choose(0.5, 1),
                )
    run.say(f"reading {plan.blocks - 1} blocks one by one")  # all but the newest
    ledger = StudyLedger(chains.study, cached_blocks=1)  # a cache of one block keeps none of them
    with run.results.table(BLOCK_READS, ("height", "read_s")) as reads:
        for height in range(plan.blocks - 1):
            start_s = perf_counter()
            ledger.block(height)
            reads.write(height=height, read_s=perf_counter() - start_s)
