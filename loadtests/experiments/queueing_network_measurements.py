"""Measures the three servers in turns for each number of customers.

A rejected run is made once more, except in a quick run. Beside the raw rows, `plan.csv` has a line
for each closed run, and `told.csv` the times that the server reported for each interaction, in the
order in which they ended. Before anything is measured, many runs like these are simulated, as
predictions: `simulated.csv` has a line for each.
"""

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import product

from loadtests.experiments.queueing_network_models import (
    SERVERS,
    TIMES,
    WARM_UP,
    Server,
    simulated_results,
)
from loadtests.generation.run import Generator, judge_run
from loadtests.generation.schedule import Request
from loadtests.lab.experiment import Options, Run
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.results import Line, TableWriter
from loadtests.processes import Service
from loadtests.servers import network

SCALE, QUICK_SCALE = 100.0, 400.0
RUNS_A_REPEAT = 100  # simulated for each run, at the least: their mean is known ten times as well
KIND = "interaction"

PLAN, TOLD = "plan", "told"
SIMULATED = "simulated"
SIMULATED_COLUMNS = ("server", "customers", "throughput_per_s", "response_s")
LATE = "late"
TOLD_TIMES = (LATE, *TIMES)
TOLD_COLUMNS = ("run", "number", *(f"{name}_s" for name in TOLD_TIMES))


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. populations: values of N. report_s: length of a run in report seconds.

    group: visits joined to one (`servers.network`). most_attempts: the most attempts at a closed
    run until one is accepted. simulated_runs: of each server and N.
    """

    populations: tuple[int, ...]
    report_s: float
    group: int
    most_attempts: int = 1
    simulated_runs: int = 200


FULL = Plan(tuple(range(1, 11)), 4000, 1, most_attempts=2)
QUICK = Plan((1, 2, 5), 1200, network.FILLED_BLOCKS)


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


def measure(run: Run) -> None:
    """Measure by the quick or the full plan."""
    plan = plan_of(run.options)
    _predict(run, plan)
    with (
        run.results.table(PLAN, PlanLine) as table,
        run.results.table(TOLD, TOLD_COLUMNS) as told,
    ):
        _measure_network(run, plan, table, told)


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
