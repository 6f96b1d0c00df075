"""Measures and reports mixed clients as study 003 did: throughput and latency against their number.

`loadtests.scenarios` describes what a client does. In process, clients are threads of `python -m
loadtests.in_process.customers`, beside a miner. Beside the raw rows there is `plan.csv`, with a
line for each run once it is over.

Without think time (Z = 0) the asymptotic bounds are X ≤ min(N/D, 1/D_b) and R ≥ max(D, N·D_b). D is
the response time of one customer. D_b is the demand at the bottleneck, assumed to be the
processors: the processor time of an interaction in the service and in the generator on the same
machine, divided by the number of cores. Locks (also the interpreter's) and the disk can only lower
the throughput further; they are the reason if the measurement stays below 1/D_b.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import monotonic

import numpy as np

from loadtests.chains import Chain, copied
from loadtests.generation.interactions import Sequences, save, whole
from loadtests.generation.rows import Row, Window, closed_window, read_rows
from loadtests.generation.run import RunRecord, judge_run, keep
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.ledgers import fresh_service, prepared
from loadtests.lab.published import MIXED, MIXED_RPC_TIMES_SLOWER
from loadtests.lab.repeated import Repeated, lines, recorded_runs, samples_by_run
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, NothingCounts, Results
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sample, Sampler, cpu_s, used_s
from loadtests.models.estimates import Interval
from loadtests.models.sample_statistics import mean_of_known
from loadtests.process_table import family
from loadtests.processes import ProgramFailed, environment, failure, started, stop
from loadtests.scenarios import BATCH_FLIGHTS, READING, SHARES, STEPS, mixed_interactions

LOCAL, HTTP = "in-process", "http"
NAMES = {LOCAL: "in process", HTTP: "over HTTP"}
CUSTOMERS = "loadtests.in_process.customers"
PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Plan:
    """Says what is measured, at each place."""

    customers: Sequence[int]
    blocks: Sequence[int]  # lengths of the ledgers
    runs: int
    counts: Mapping[str, tuple[int, int]]  # place -> interactions of each: to warm up, measured
    new_flights: int  # size of the pool of flights to be added


# a few interactions over HTTP, and enough in process that a run is not over at once
QUICK = Plan((1, 4, 16), (0, 100), 1, {LOCAL: (20, 180), HTTP: (5, 25)}, 3000)
# as many as the study had; about 45 minutes on two cores, a quarter of that with --reps 1
FULL = Plan(
    (1, 2, 4, 8, 16, 30, 60),
    MIXED.books,
    MIXED.runs,
    dict.fromkeys((LOCAL, HTTP), (MIXED.warm_up, MIXED.measured)),
    30_000,
)


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """Describes a run in `plan.csv`."""

    run: str
    place: str
    blocks: int
    customers: int
    warm_up: int  # interactions of each customer that do not count
    measured: int  # those that do
    interactions: int  # of all together
    cpu_s: float  # of the service, or of the ledger's process, with the miner's


def measure(run: Run) -> None:
    """Measure places in turns, so that a slow hour of the machine meets all of them."""
    plan = run.choose(QUICK, FULL)
    runs = run.options.reps or plan.runs
    material = prepared(run, plan.blocks, plan.new_flights)
    sequences = mixed_interactions(
        material.questions,
        material.new,
        customers=max(plan.customers),
        count=max(map(sum, plan.counts.values())),
        seed=run.options.seed,
    )
    with run.results.table(PLAN, PlanLine) as table:
        for rep, blocks, customers in product(range(1, runs + 1), plan.blocks, plan.customers):
            run.say(f"blocks: {blocks}, customers: {customers}, {rep} of {runs}")
            for place, measured in ((LOCAL, _inside), (HTTP, _over_http)):
                own = [sequence[: sum(plan.counts[place])] for sequence in sequences[:customers]]
                name = f"{place}-{blocks}-{customers}-{rep:02}"
                record, spent_s = measured(run, material.chains[blocks], own, name)
                counts = *plan.counts[place], _judge(run, record, place)
                table.add(PlanLine(name, place, blocks, customers, *counts, spent_s))


def _judge(run: Run, record: RunRecord, place: str) -> int:
    """Judge a run by its interactions. Returns how many there were."""
    interactions = whole(record.rows, STEPS)
    failed = sum(not row.succeeded for row in interactions)
    facts = replace(record.facts(), requests=len(interactions), failed=failed)
    if place == LOCAL:  # the customers are part of the measured process
        facts = replace(facts, client_cpu=None)
    judge_run(run.results.folder, record, facts)
    return len(interactions)


def _over_http(run: Run, chain: Chain | None, own: Sequences, name: str) -> tuple[RunRecord, float]:
    """Make a run over HTTP. Returns also the processor time (s) of the service during it."""
    with fresh_service(run, chain, name) as service:
        before = cpu_s(family(service.pid))
        record = run.generator(is_quiet=True).interactions(service, own, name)
        return record, used_s(cpu_s(family(service.pid)), before)


def _inside(run: Run, chain: Chain | None, own: Sequences, name: str) -> tuple[RunRecord, float]:
    """Make a run in the ledger's process. Raises ProgramFailed.

    Returns also the processor time (s) of that process and of the miner during it.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(copied(chain, run.scratch / "fresh" / name))
        scratch = Path(stack.enter_context(TemporaryDirectory(dir=run.scratch)))
        given, rows, facts = (scratch / file for file in ("given.jsonl", "rows.csv", "facts.json"))
        save(given, own)
        variables = environment(folder, {})
        miner = started([sys.executable, "-m", "backend", "mine"], run.log, variables)
        stack.callback(stop, miner)
        before = cpu_s(family(miner.pid))
        command = [sys.executable, "-m", CUSTOMERS, name, *map(str, (given, rows, facts))]
        program = started(command, run.log, variables)
        stack.callback(stop, program)
        samples = list(Sampler(program.pid, miner.pid).while_running(program, monotonic()))
        if program.returncode != 0:
            raise ProgramFailed(failure(command, program.returncode, run.log))
        mining_s = used_s(cpu_s(family(miner.pid)), before)
        record = keep(run.results.folder, name, LOCAL, read_rows(rows), samples)
        own_s: float = json.loads(facts.read_bytes())["cpu_s"]
        return record, own_s + mining_s


# --- what was measured ---------------------------------------------------------------------------

LEAST_SAMPLED_S = 2.0  # less is too short to measure the generator


@dataclass(frozen=True, slots=True)
class MixedRun:
    """Holds a run, and the time in which all customers are at work."""

    line: PlanLine
    window: Window
    generator_demand_s: float | None  # processor time for an interaction; None: none, or too short


def mixed_runs(results: Results) -> list[MixedRun]:
    """Return the runs that count and have a window, in the order in which they were made."""
    samples, runs = samples_by_run(results), []
    for line, rows in recorded_runs(results, PLAN, PlanLine):
        interactions = whole(rows, STEPS)
        try:
            window = closed_window(interactions, line.warm_up)
        except ValueError:  # the first customer finished before the last was ready: no window
            continue
        during = [] if line.place == LOCAL else samples.get(line.run, [])
        runs.append(MixedRun(line, window, _generator_s(interactions, during)))
    return runs


def _generator_s(interactions: Sequence[Row], samples: Sequence[Sample]) -> float | None:
    """Return the generator's processor time (s) for an interaction, while there are samples."""
    last_s = max(row.done_s for row in interactions)
    during = [sample for sample in samples if sample.at_s <= last_s]
    if not during or during[-1].at_s < LEAST_SAMPLED_S:
        return None
    lengths_s = np.diff([0.0, *(sample.at_s for sample in during)])
    used_s = np.dot([sample.client_cpu for sample in during], lengths_s)
    return float(used_s) / sum(row.done_s <= during[-1].at_s for row in interactions)


@dataclass(frozen=True)
class Point(Repeated[MixedRun]):
    """Holds the runs of N customers at a place and ledger."""

    @cached_property
    def throughput(self) -> Interval:
        return self.over(lambda run: run.window.throughput_per_s)

    @cached_property
    def response(self) -> Interval:
        return self.over(lambda run: run.window.mean_response_s)

    @property
    def service_demand_s(self) -> float:
        """Return the mean processor time of the service for an interaction, in s."""
        return fmean(run.line.cpu_s / run.line.interactions for run in self.runs)


def points_of(runs: Sequence[MixedRun]) -> list[Point]:
    key = attrgetter("line.blocks", "line.place", "line.customers")
    return Point.of_each(sorted(runs, key=key), key)


@dataclass(frozen=True)
class Curve:
    """Compares the points at a place and ledger with bounds. cores: of the machine."""

    points: Sequence[Point]
    cores: int

    def __str__(self) -> str:
        return f"{self.line.blocks} blocks, {NAMES[self.line.place]}"

    @property
    def line(self) -> PlanLine:
        return self.points[0].line

    @property
    def best(self) -> Point:
        return max(self.points, key=lambda point: point.throughput.estimate)

    @property
    def demand_s(self) -> float | None:
        """Return D, the response time (s) of one customer; None if no run of it counts."""
        return self.points[0].response.estimate if self.line.customers == 1 else None

    @cached_property
    def bottleneck_s(self) -> float:
        """Return D_b (s) of the most customers; the generator's of the most where it is known."""
        known = (mean_of_known(r.generator_demand_s for r in p.runs) for p in self.points[::-1])
        generator_s = next((time_s for time_s in known if time_s is not None), 0.0)
        return (self.points[-1].service_demand_s + generator_s) / self.cores

    @property
    def crossing(self) -> float | None:
        """Return N_opt = D/D_b, where the asymptotes meet; None if D is unknown."""
        return None if self.demand_s is None else self.demand_s / self.bottleneck_s

    def least_s(self, customers: float) -> float:
        """Return the lower bound of R (s), by the bottleneck alone if D is unknown."""
        return max(self.demand_s or 0.0, customers * self.bottleneck_s)

    def most_per_s(self, customers: float) -> float:
        """Return the upper bound of X (1/s), N/R at the lower bound of R."""
        return customers / self.least_s(customers)

    def share(self, point: Point) -> float:
        """Return the throughput of a point in per cent of its upper bound."""
        return 100 * point.throughput.estimate / self.most_per_s(point.line.customers)

    @property
    def shares(self) -> list[tuple[float, int]]:
        """Return each point's throughput in per cent of its upper bound, and its N."""
        return [(self.share(point), point.line.customers) for point in self.points]


def curves(points: Sequence[Point], cores: int) -> list[Curve]:
    groups = grouped(points, lambda point: (point.line.blocks, point.line.place))
    return [Curve(group, cores) for group in groups.values()]


# --- the report ----------------------------------------------------------------------------------

ABOVE_BOUND = 105  # per cent
_SOURCES: Mapping[str, Source] = {NAMES[LOCAL]: "second", NAMES[HTTP]: "ours"}
_BOUNDS: Mapping[str, Source] = {LOCAL: "bound", HTTP: "model"}


def analyse(results: Results) -> Report:
    """Report curves and bounds. Raises NothingCounts if there is no complete run."""
    manifest = results.manifest()
    cores = int(manifest["machine"]["cores"])
    points = points_of(mixed_runs(results))
    if not points:
        raise NothingCounts(f"{results.folder} has no run that counts in which all clients worked")
    every, sentences = curves(points, cores), Sentences("mixed_clients")
    ledgers = grouped(points, lambda point: point.line.blocks).values()
    drawn = [_figures(ledger, every, sentences) for ledger in ledgers]
    throughputs, latencies = zip(*drawn, strict=True)
    columns, rows = ("The bookstore's", "Ours", "Why"), sentences.rows("bookstore")
    parameters = _parameters(sentences, QUICK if manifest["quick"] else FULL)
    sections = [
        Section("Throughput against clients", sentences("window"), throughputs),
        Section("Latency against clients", sentences("latency"), latencies),
        Section("Bounds of a closed system", sentences("bounds", cores=cores), [_bounds(every)]),
        Section(
            "What a client does",
            sentences("counterparts"),
            [Table("Counterparts", columns, rows), *parameters],
        ),
    ]
    findings = sentences(
        "findings",
        curves=every,
        cores=cores,
        study=MIXED,
        slower=MIXED_RPC_TIMES_SLOWER,
        ledgers=grouped(every, lambda curve: curve.line.blocks),
        places=grouped(every, lambda curve: NAMES[curve.line.place]),
        ratios=_ratios,
        above=ABOVE_BOUND,
    )
    return Report(findings, sections, [*_metrics(every)])


def _ratios(first: Curve, last: Curve) -> list[tuple[int, float]]:
    """Return each N of both curves, and the latency of the last there over that of the first."""
    if first is last:
        return []
    first_s, last_s = (
        {point.line.customers: point.response.estimate for point in curve.points}
        for curve in (first, last)
    )
    return [(n, last_s[n] / first_s[n]) for n in last_s if n in first_s]


def _metrics(every: Sequence[Curve]) -> Iterator[Metric]:
    for point in (point for curve in every for point in curve.points):
        key = f"[{point.line.place},{point.line.blocks},{point.line.customers}]"
        yield Metric.of_amount(f"throughput{key}", point.throughput, "1/s")
        yield Metric.of_amount(f"latency{key}", point.response, "s")


# --- the study's figures ---------------------------------------------------------------------


def _figures(
    points: Sequence[Point], every: Sequence[Curve], sentences: Sentences
) -> tuple[Figure, Figure]:
    """Draw figures 1 and 2 of the study for the ledger that has these points."""
    blocks = points[0].line.blocks
    by_place = {curve.line.place: curve for curve in every if curve.line.blocks == blocks}
    table = Table.from_items(
        f"A ledger of {blocks} blocks",
        points,
        [
            ("Clients are", lambda p: NAMES[p.line.place]),
            ("N", lambda p: p.line.customers),
            ("Runs", lambda p: len(p.runs)),
            ("X / 1/s", lambda p: p.throughput),
            ("Share of its bound / %", lambda p: by_place[p.line.place].share(p)),
            ("R / ms", lambda p: p.response.times(1000)),
            ("Service's processor time / ms", lambda p: 1000 * p.service_demand_s),
        ],
        "Processor time is that of an interaction, with the miner's; in process the clients are "
        "part of the service.",
    )
    curves, clients = list(by_place.values()), Axis("clients N")
    return (
        figure(
            f"Throughput, {blocks} blocks",
            sentences.paragraph("throughput_figure"),
            clients,
            Axis("interactions / s", is_logarithmic=True),
            _series(curves, points, lambda point: point.throughput, Curve.most_per_s),
            table,
        ),
        figure(
            f"Latency, {blocks} blocks",
            sentences.paragraph("latency_figure"),
            clients,
            Axis("mean latency / ms", is_logarithmic=True),
            _series(curves, points, lambda point: point.response, Curve.least_s, 1000),
        ),
    )


def _series(
    curves: Sequence[Curve],
    points: Sequence[Point],
    y: Callable[[Point], Interval],
    bound: Callable[[Curve, float], float],
    factor: float = 1,
) -> list[Series]:
    by_place = grouped(points, lambda point: NAMES[point.line.place])
    series = lines(by_place, _SOURCES, lambda point: point.line.customers, y, factor)
    for curve in curves:
        low, high = curve.points[0].line.customers, curve.points[-1].line.customers
        bend = min(max(low, curve.crossing or low), high)  # where bounds bend
        ns = sorted({bend, *np.linspace(low, high, 41).tolist()})
        bounds = [factor * bound(curve, n) for n in ns]
        place = curve.line.place
        series.append(Series(f"bound {NAMES[place]}", _BOUNDS[place], ns, bounds))
    return series


def _bounds(every: Sequence[Curve]) -> Table:
    return Table.from_items(
        "Bounds",
        every,
        [
            ("Blocks", lambda curve: curve.line.blocks),
            ("Clients are", lambda curve: NAMES[curve.line.place]),
            ("D / ms", lambda curve: times(1000, curve.demand_s)),
            ("D_b / ms", lambda curve: 1000 * curve.bottleneck_s),
            ("1/D_b / 1/s", lambda curve: 1 / curve.bottleneck_s),
            ("D/D_b", lambda curve: curve.crossing),
            ("Best N", lambda curve: curve.best.line.customers),
        ],
    )


def _parameters(sentences: Sentences, plan: Plan) -> list[Table]:
    """Return tables 1 and 2 of the study, with what `plan` has instead."""
    counts = zip(*plan.counts.values(), strict=True)
    warm_up, count = (" and ".join(dict.fromkeys(map(str, number))) for number in counts)
    ours = {"warm_up": warm_up, "count": count, "steps": STEPS[READING], "batch": BATCH_FLIGHTS}
    titles = {
        "workload": "Table 1 of the study: the workload",
        "books": "Table 2 of the study: the books",
    }
    columns = ("Parameter", "Meaning", "The study", "Ours", "")
    return [
        Table(title, columns, sentences.rows(part, **ours, shares=SHARES))
        for part, title in titles.items()
    ]


EXPERIMENT = Experiment.described("mixed-clients", "003", measure, analyse)
