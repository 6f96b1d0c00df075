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

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import product
from statistics import fmean

from loadtests.experiments.queueing_network_models import (
    MODELS,
    SERVERS,
    STATIONS,
    WARM_UP,
    Expectations,
    Expected,
    Prediction,
    Server,
    counted,
    expectations,
    predicted,
    simulated_results,
)
from loadtests.generation.rows import Row, customer_of
from loadtests.generation.run import judge_run
from loadtests.generation.schedule import Request
from loadtests.grouping import grouped
from loadtests.lab.experiment import Options, Run
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.repeated import Repeated, recorded_runs
from loadtests.lab.results import Line, Results, TableWriter
from loadtests.models.estimates import TOLERANCE, WORST_FIRST, Interval, Verdict, verdict
from loadtests.processes import Service
from loadtests.servers import network

SCALE, QUICK_SCALE = 100.0, 400.0
SIMULATED_RUNS = 200  # of each server and N, at the least
RUNS_A_REPEAT = 100  # simulated for each run, at the least: their mean is known ten times as well
KIND = "interaction"

PLAN = "plan"
SIMULATED = "simulated"
REPORTED = "told"  # times that a server reported of an interaction
REPORTED_TIMES = ("late", *STATIONS, *(f"{name}_queue" for name in STATIONS))


@dataclass(frozen=True, slots=True)
class SimulatedLine(Line):
    """Lists a simulated run."""

    server: str
    customers: int
    throughput_per_s: float
    response_s: float


@dataclass(frozen=True, slots=True)
class ReportedLine(Line):
    """Lists the times (s) that a server reported of the interaction that ended as `number`-th."""

    run: str
    number: int
    late_s: float
    cpu_s: float
    disk_s: float
    delay_s: float
    cpu_queue_s: float
    disk_queue_s: float
    delay_queue_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much is measured. populations: values of N. report_s: length of a run (report s).

    group: visits joined to one (`servers.network`). most_attempts: the most attempts at a closed
    run until one is accepted.
    """

    populations: tuple[int, ...]
    report_s: float
    group: int
    most_attempts: int = 1


FULL = Plan(tuple(range(1, 11)), 4000, 1, most_attempts=2)
QUICK = Plan((1, 2, 5), 1200, network.FILLED_BLOCKS)


def plan_of(options: Options) -> Plan:
    """Return the plan for these options: half an hour, or less than two minutes if quick."""
    plan = QUICK if options.quick else FULL
    chosen = tuple(n for n in plan.populations if n in options.loads)
    return replace(plan, populations=chosen) if options.loads else plan


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """Lists a closed run. group, report_s: as in `Plan`. warm_up: first requests left out."""

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
    plan, scale = plan_of(run.options), run.options.scale or 1.0
    _predict(run, plan)
    with (
        run.results.table(PLAN, PlanLine) as table,
        run.results.table(REPORTED, ReportedLine) as times,
        ExitStack() as stack,
    ):
        services = {
            server: stack.enter_context(
                network.running(
                    run.log,
                    emulated_disk=scale,
                    cv=server.cv,
                    group=plan.group,
                    threads=server.threads,
                    seed=run.options.seed,
                )
            )
            for server in SERVERS
        }
        for customers, server in product(plan.populations, SERVERS):
            run.say(f"N = {customers}: {server.label}")
            wanted, counting = run.options.reps or 1, 0
            for attempt in range(wanted * plan.most_attempts):
                line = _line(plan, scale, server, customers, attempt)
                table.add(line)
                counting += _counts(run, services[server], line, run.options.seed + attempt, times)
                if counting == wanted:
                    break


def _predict(run: Run, plan: Plan) -> None:
    """Simulate many runs of every server, to know what a single one should give."""
    runs = max(SIMULATED_RUNS, RUNS_A_REPEAT * (run.options.reps or 1))
    run.say(f"simulating {runs} runs of each server and N")
    seed = f"{run.options.seed} simulated"
    by_cell = simulated_results(plan.populations, plan.report_s, plan.group, seed, runs)
    with run.results.table(SIMULATED, SimulatedLine) as table:
        for (server, customers), results in by_cell.items():
            for result in results:
                table.add(SimulatedLine(server.name, customers, *astuple(result)))


def _line(plan: Plan, scale: float, server: Server, customers: int, attempt: int) -> PlanLine:
    name = f"{server.name}-{customers:02}-{attempt + 1}"
    how = scale, NETWORK_THINK_S / scale, server.cv, plan.group, WARM_UP, plan.report_s
    return PlanLine(name, server.name, customers, *how)


def _counts(
    run: Run, service: Service, line: PlanLine, seed: int, times: TableWriter[ReportedLine]
) -> bool:
    """Make a closed run. Returns whether it counts."""
    record = replace(run.generator(), seed=seed).closed(
        service,
        {KIND: [Request(KIND, network.INTERACTION)]},
        line.run,
        customers=line.customers,
        think_s=line.think_s,
        duration_s=line.report_s / line.scale,
    )
    for number, reported in enumerate(service.get(network.TOLD)):
        times_s = (reported[name] for name in REPORTED_TIMES)
        times.add(ReportedLine(line.run, number, *times_s))
    return judge_run(run.results.folder, record)


LEAST_INTERACTIONS = 8

Times = Mapping[str, float]  # `cpu`, `cpu_queue` …, `late` -> report seconds
_NAMED = {server.name: server for server in SERVERS}


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """Holds a run, with the interactions that count in the order of their ends.

    cycles_s: from the end of a customer's interaction to the end of the next one. reported: times
    that the server reported; empty unless it reported all interactions.
    """

    server: Server
    customers: int
    cycles_s: Sequence[float]
    responses_s: Sequence[float]
    reported: Sequence[Times]


def closed_runs(results: Results) -> list[ClosedRun]:
    """Return the runs that count, in the order of the plan; none without a plan."""
    reported = grouped(results.lines_if_any(REPORTED, ReportedLine), lambda line: line.run)
    return [
        _closed_run(line, rows, reported.get(line.run, []))
        for line, rows in recorded_runs(results, PLAN, PlanLine)
        if rows
    ]


def _closed_run(line: PlanLine, rows: Sequence[Row], reported: Sequence[ReportedLine]) -> ClosedRun:
    """Return a run in report seconds. reported: its times as in the table, in order of ends."""
    ended, scale = sorted(rows, key=lambda row: row.done_s), line.scale
    cycles = counted([(customer_of(row), row.done_s) for row in ended], line.warm_up)
    times = [reported[at] for at, _ in cycles] if len(reported) == len(ended) else []
    return ClosedRun(
        _NAMED[line.server],
        line.customers,
        cycles_s=[scale * cycle_s for _, cycle_s in cycles],
        responses_s=[scale * ended[at].closed_response_s for at, _ in cycles],
        reported=[
            {name: scale * getattr(own, f"{name}_s") for name in REPORTED_TIMES} for own in times
        ],
    )


def expected(results: Results) -> Expectations:
    """Return what runs should give, by simulated runs. Raises ResultsError if there are none."""
    lines = results.lines(SIMULATED, SimulatedLine)
    by_cell = grouped(lines, lambda line: (_NAMED[line.server], line.customers))
    return expectations(
        {
            cell: [Prediction(line.throughput_per_s, line.response_s) for line in own]
            for cell, own in by_cell.items()
        }
    )


# --- points --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtStation:
    """Says how busy a station is: utilisation U = X·D, customers Q, and visits_per_s X·V."""

    utilisation: float
    customers: float
    visits_per_s: float


@dataclass(frozen=True)
class Point(Repeated[ClosedRun]):
    """Sums up the runs of a server with N customers. expected: of simulated runs like them."""

    server: Server
    customers: int
    expected: Expected

    @cached_property
    def throughput_per_s(self) -> Interval:
        """Return X in 1/s, by Little's law."""
        xs = [self.customers / fmean(run.cycles_s) for run in self.runs]
        return self.expected.throughput_per_s.interval(xs)

    @cached_property
    def response_s(self) -> Interval:
        return self.expected.response_s.interval([fmean(run.responses_s) for run in self.runs])

    @cached_property
    def stations(self) -> Mapping[str, AtStation]:
        """Return the stations by name, with the study's V; none unless each run reports times."""
        if not all(run.reported for run in self.runs):
            return {}
        times = [reported for run in self.runs for reported in run.reported]
        mean_s = {name: fmean([reported[name] for reported in times]) for name in times[0]}
        x = self.throughput_per_s.estimate
        return {
            name: AtStation(
                x * mean_s[name], x * (mean_s[name] + mean_s[f"{name}_queue"]), x * station.visits
            )
            for name, station in STATIONS.items()
        }

    @property
    def little(self) -> float:
        """Return X·(R + Z)/N, which is 1 if customers do nothing but ask and think for Z."""
        cycle_s = self.response_s.estimate + NETWORK_THINK_S
        return self.throughput_per_s.estimate * cycle_s / self.customers

    @property
    def outside(self) -> float | None:
        """Return the mean number of customers who are at no station and do not think.

        They wait at the door, or their requests are on the way. None without stations.
        """
        if not self.stations:
            return None
        thinking = self.throughput_per_s.estimate * NETWORK_THINK_S
        inside = sum(station.customers for station in self.stations.values())
        return max(0.0, self.customers - thinking - inside)


def points_of(runs: Sequence[ClosedRun], expected: Expectations) -> list[Point]:
    long_enough = [run for run in runs if len(run.responses_s) >= LEAST_INTERACTIONS]
    cells = grouped(long_enough, lambda run: (run.server, run.customers))
    return [Point(made, *cell, expected[cell]) for cell, made in cells.items()]


# --- models against servers ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """Compares a model with a server. farthest: the N with the largest difference.

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


def pairs(points: Sequence[Point], expected: Expectations) -> list[Pair]:
    by_server = grouped(points, lambda point: point.server)
    return [
        _pair(server, model, by_server[server], expected)
        for server in SERVERS
        for model in MODELS
        if server in by_server
    ]


def _pair(server: Server, model: str, points: Sequence[Point], expected: Expectations) -> Pair:
    differences: dict[int, Interval] = {}
    for point in points:
        if prediction := predicted(model, point.customers, expected):
            ratio = point.throughput_per_s.times(1 / prediction.throughput_per_s)
            differences[point.customers] = ratio.plus(-1)
    verdicts = {verdict(difference, 1, TOLERANCE) for difference in differences.values()}
    worst = min(verdicts, key=WORST_FIRST.index)
    farthest = max(differences, key=lambda n: abs(differences[n].estimate))
    return Pair(server, model, len(differences), farthest, differences[farthest], worst)
