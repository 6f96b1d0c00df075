"""Measures closed systems, reads what was measured, and compares it with the models for each N.

The three servers are measured in turns for each number of customers N. A rejected run is made once
more, except in a quick run. Beside the raw rows, `plan.csv` has a line for each closed run, and
`told.csv` the times that the server reported for each interaction, in the order in which they
ended. Before anything is measured, many runs like these are simulated, as predictions:
`simulated.csv` has a line for each.

Times that are read are in report seconds: K times the measured ones. X = N/mean cycle, and R is the
mean response time. Both are means over the runs of a server and N, with the 95 % interval of the
`Spread` of simulated runs. A model agrees with a server if at every measured N the whole interval
of X lies within the tolerance of its prediction; it disagrees if at some N the whole interval lies
outside.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean

from loadtests.experiments.queueing_network_models import (
    MODELS,
    SERVERS,
    STATIONS,
    TIMES,
    WARM_UP,
    Cell,
    Expectations,
    Expected,
    Prediction,
    Server,
    counted,
    expectations,
    predicted,
    simulated_results,
)
from loadtests.generation.rows import customer_of
from loadtests.generation.run import Generator, judge_run
from loadtests.generation.schedule import Request
from loadtests.grouping import grouped
from loadtests.lab.experiment import Options, Run
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.repeated import Repeated, accepted, accepted_by_run, rows_by_run, that_count
from loadtests.lab.results import Line, Results, TableWriter
from loadtests.models.estimates import TOLERANCE, Interval, Verdict, verdict
from loadtests.models.sample_statistics import mean_of
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
    name = f"{server.name}-{customers:02}-{attempt + 1}"
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


LEAST_INTERACTIONS = 8

Told = Mapping[str, float]  # `cpu`, `cpu_queue` …, `late` -> report seconds
_NAMED = {server.name: server for server in SERVERS}


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """A run, with the interactions that count in the order of their ends.

    cycles_s: from the end of a customer's interaction to the end of the next one. told: times that
    the server reported; empty unless it reported all interactions.
    """

    server: Server
    customers: int
    is_accepted: bool
    cycles_s: Sequence[float]
    responses_s: Sequence[float]
    told: Sequence[Told]


def closed_runs(results: Results) -> list[ClosedRun]:
    """All runs with rows, in the order of the plan. Raises ResultsError without a plan."""
    rows, is_accepted = rows_by_run(results), accepted_by_run(results)
    told = grouped(results.rows_if_any(TOLD), lambda row: row["run"])  # in the order of the ends
    found = []
    for line in results.lines(PLAN, PlanLine):
        ended, scale = sorted(rows[line.run], key=lambda row: row.done_s), line.scale
        if not ended:
            continue
        cycles = counted([(customer_of(row), row.done_s) for row in ended], line.warm_up)
        of_run = told.get(line.run, [])
        of_counted = [of_run[at] for at, _ in cycles] if len(of_run) == len(ended) else []
        made = ClosedRun(
            _NAMED[line.server],
            line.customers,
            not is_accepted or is_accepted.get(line.run, False),
            cycles_s=[scale * cycle_s for _, cycle_s in cycles],
            responses_s=[scale * ended[at].closed_response_s for at, _ in cycles],
            told=[
                {name: scale * float(row[f"{name}_s"]) for name in TOLD_TIMES} for row in of_counted
            ],
        )
        found.append(made)
    return found


def expected(results: Results) -> Expectations:
    """What the runs should give, by simulated runs like them. Raises ResultsError without any."""
    found: dict[Cell, list[Prediction]] = defaultdict(list)
    for row in results.rows(SIMULATED):
        one = Prediction(float(row["throughput_per_s"]), float(row["response_s"]))
        found[_NAMED[row["server"]], int(row["customers"])].append(one)
    return expectations(found)


# --- points --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtStation:
    """A station. utilisation: U = X·D. customers: Q = X·(D + waiting). visits_per_s: X·V."""

    utilisation: float
    customers: float
    visits_per_s: float


@dataclass(frozen=True)
class Point(Repeated[ClosedRun]):
    """A server with N customers. expected: of simulated runs like its own."""

    server: Server
    customers: int
    expected: Expected

    @cached_property
    def throughput_per_s(self) -> Interval:
        """X."""
        cycles_s = [mean_of(run.cycles_s) for run in self.runs]
        xs = [self.customers / cycle_s for cycle_s in cycles_s]  # Little's law
        return self.expected.throughput_per_s.interval(xs)

    @cached_property
    def response_s(self) -> Interval:
        """R."""
        return self.expected.response_s.interval([mean_of(run.responses_s) for run in self.runs])

    @cached_property
    def told(self) -> Told:
        """The means of the times that the server reported; empty unless it did so in each run."""
        if not all(run.told for run in self.runs):
            return {}
        told = [one for run in self.runs for one in run.told]
        return {name: fmean([one[name] for one in told]) for name in told[0]}

    @cached_property
    def stations(self) -> Mapping[str, AtStation]:
        """The stations by name, with the study's V; empty if the server did not report times."""
        x, told = self.throughput_per_s.estimate, self.told
        return {
            name: AtStation(
                x * told[name], x * (told[name] + told[f"{name}_queue"]), x * station.visits
            )
            for name, station in STATIONS.items()
            if name in told
        }

    @property
    def little(self) -> float:
        """X·(R + Z)/N, which is 1 if customers do nothing but ask and think for Z."""
        cycle_s = self.response_s.estimate + NETWORK_THINK_S
        return self.throughput_per_s.estimate * cycle_s / self.customers

    @property
    def outside(self) -> float | None:
        """The mean number of customers who are at no station and do not think.

        They wait at the door, or their requests are on the way. None without stations.
        """
        if not self.stations:
            return None
        thinking = self.throughput_per_s.estimate * NETWORK_THINK_S
        inside = sum(station.customers for station in self.stations.values())
        return max(0.0, self.customers - thinking - inside)


def points(runs: Sequence[ClosedRun], expected: Expectations) -> list[Point]:
    """A point for each server and N with a run that is long enough, accepted or rejected."""
    long_enough = [run for run in runs if len(run.responses_s) >= LEAST_INTERACTIONS]
    cells = grouped(long_enough, lambda run: (run.server, run.customers))
    return [Point(that_count(of), len(of), *cell, expected[cell]) for cell, of in cells.items()]


# --- models against servers ----------------------------------------------------------------------

WORST_FIRST = (Verdict.DISAGREES, Verdict.NOT_DECIDED, Verdict.AGREES)


@dataclass(frozen=True, slots=True)
class Pair:
    """A model compared with a server. farthest: the N with the largest difference of throughput.

    difference: measured − predicted there, as a share of the prediction. populations: the number of
    measured N.
    """

    server: Server
    model: str
    populations: int
    farthest: int
    difference: Interval
    verdict: Verdict

    def __str__(self) -> str:
        return f"{100 * self.difference.estimate:+.1f} ± {100 * self.difference.half_width:.1f} %"


def pairs(found: Sequence[Point], expected: Expectations) -> list[Pair]:
    """The comparisons of all models with all servers that have an accepted point."""
    by_server = grouped(accepted(found), lambda one: one.server)
    return [
        _pair(server, model, by_server[server], expected)
        for server in SERVERS
        for model in MODELS
        if server in by_server
    ]


def _pair(server: Server, model: str, found: Sequence[Point], expected: Expectations) -> Pair:
    off: dict[int, Interval] = {}
    for one in found:
        if prediction := predicted(model, one.customers, expected):
            share = one.throughput_per_s.times(1 / prediction.throughput_per_s)
            off[one.customers] = share.plus(-1)
    verdicts = {verdict(difference, 1, TOLERANCE) for difference in off.values()}
    farthest = max(off, key=lambda n: abs(off[n].estimate))
    worst = next(each for each in WORST_FIRST if each in verdicts)
    return Pair(server, model, len(off), farthest, off[farthest], worst)
