"""Measures mixed clients as study 003 did: throughput and latency against their number.

`mixed_clients_measurements` measures what `loadtests.scenarios` describes. Here are the curves, the
bounds of a closed system and the report.

Without think time (Z = 0) the asymptotic bounds are X ≤ min(N/D, 1/D_b) and R ≥ max(D, N·D_b). D is
the response time of one customer. D_b is the demand at the bottleneck, assumed to be the
processors: the processor time of an interaction in the service and in the generator on the same
machine, divided by the number of cores. Locks (also the interpreter's) and the disk can only lower
the throughput further; they are the reason if the measurement stays below 1/D_b.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from statistics import fmean

from loadtests.experiments.mixed_clients_measurements import (
    FULL,
    HTTP,
    LOCAL,
    NAMES,
    PLAN,
    QUICK,
    Plan,
    PlanLine,
    measure,
)
from loadtests.generation.interactions import whole
from loadtests.generation.rows import Row, Window, closed_window
from loadtests.grouping import grouped
from loadtests.lab.content import NONE, Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment
from loadtests.lab.published import MIXED, MIXED_RPC_TIMES_SLOWER
from loadtests.lab.repeated import (
    Estimate,
    Repeated,
    accepted,
    lines,
    recorded_runs,
    rejected_told,
    samples_by_run,
)
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sample
from loadtests.models.sample_statistics import mean_of_known
from loadtests.scenarios import BATCH_FLIGHTS, READING, SHARES, STEPS

LEAST_SAMPLED_S = 2.0  # less is too short to measure the generator


@dataclass(frozen=True, slots=True)
class MixedRun:
    """A run, and the time in which all customers are at work."""

    line: PlanLine
    window: Window
    generator_demand_s: float | None  # processor time for an interaction; None: none, or too short
    is_accepted: bool


def mixed_runs(results: Results) -> list[MixedRun]:
    """All runs with a window, in the order in which they were made."""
    samples, found = samples_by_run(results), []
    for line, rows, is_accepted in recorded_runs(results, PLAN, PlanLine):
        interactions = whole(rows, STEPS)
        try:
            window = closed_window(interactions, line.warm_up)
        except ValueError:  # the first customer finished before the last was ready: no window
            continue
        during = [] if line.place == LOCAL else samples.get(line.run, [])
        found.append(MixedRun(line, window, _generator_s(interactions, during), is_accepted))
    return found


def _generator_s(interactions: Sequence[Row], samples: Sequence[Sample]) -> float | None:
    """The generator's processor time for an interaction, over the seconds that have samples."""
    last_s = max(row.done_s for row in interactions)
    during = [sample for sample in samples if sample.at_s <= last_s]
    if not during or during[-1].at_s < LEAST_SAMPLED_S:
        return None
    lengths_s = (end_s - start_s for start_s, end_s in pairwise([0.0, *(of.at_s for of in during)]))
    used_s = sum(of.client_cpu * length_s for of, length_s in zip(during, lengths_s, strict=True))
    return used_s / sum(row.done_s <= during[-1].at_s for row in interactions)


@dataclass(frozen=True)
class Point(Repeated[MixedRun]):
    """N customers at a place and ledger. Means of rejected runs are shown, but for no finding."""

    @property
    def line(self) -> PlanLine:
        """The line of one of the runs, which has place, ledger and N."""
        return self.runs[0].line

    @cached_property
    def throughput(self) -> Estimate:
        """X over runs, in 1/s."""
        return self.over(lambda run: run.window.throughput_per_s)

    @cached_property
    def response(self) -> Estimate:
        """R over runs, in s."""
        return self.over(lambda run: run.window.mean_response_s)

    @property
    def service_demand_s(self) -> float:
        """The processor time of the service for an interaction."""
        return fmean(run.line.cpu_s / run.line.interactions for run in self.runs)


def points_of(runs: Sequence[MixedRun]) -> list[Point]:
    """All measurements, accepted or rejected, ordered by ledger, place and N."""
    key = attrgetter("line.blocks", "line.place", "line.customers")
    return Point.of_each(sorted(runs, key=key), key)


@dataclass(frozen=True)
class Curve:
    """All accepted points at one place and ledger, at least one. cores: those of the machine."""

    points: Sequence[Point]
    cores: int

    def __str__(self) -> str:
        return f"{self.line.blocks} blocks, {NAMES[self.line.place]}"

    @property
    def line(self) -> PlanLine:
        """The line of one of the runs, which has place and ledger."""
        return self.points[0].line

    @property
    def best(self) -> Point:
        """The point with the highest throughput."""
        return max(self.points, key=lambda point: point.throughput.value)

    @property
    def demand_s(self) -> float | None:
        """D, the response time of one customer; None if its runs were rejected."""
        return self.points[0].response.value if self.line.customers == 1 else None

    @cached_property
    def gap_s(self) -> float:
        """D_b of the most customers; the generator's is of the most for whom it is known."""
        told = [mean_of_known(run.generator_demand_s for run in of.runs) for of in self.points]
        generator_s = next((seconds for seconds in reversed(told) if seconds is not None), 0.0)
        return (self.points[-1].service_demand_s + generator_s) / self.cores

    @property
    def crossing(self) -> float | None:
        """N_opt = D/D_b, where the asymptotes meet; None if D is unknown."""
        return None if self.demand_s is None else self.demand_s / self.gap_s

    def most_per_s(self, customers: float) -> float:
        """The upper bound of X, by the bottleneck alone if D is unknown."""
        return min(customers / (self.demand_s or customers * self.gap_s), 1 / self.gap_s)

    def least_s(self, customers: float) -> float:
        """The lower bound of R, by the bottleneck alone if D is unknown."""
        return max(self.demand_s or 0.0, customers * self.gap_s)

    def share(self, point: Point) -> float:
        """The throughput of a point in per cent of its upper bound."""
        return 100 * point.throughput.value / self.most_per_s(point.line.customers)

    @property
    def shares(self) -> list[tuple[float, int]]:
        """These of all its points, each with its N."""
        return [(self.share(point), point.line.customers) for point in self.points]


def curves(points: Sequence[Point], cores: int) -> list[Curve]:
    """A curve for each ledger and place with an accepted point, in their order."""
    found = grouped(accepted(points), lambda point: (point.line.blocks, point.line.place))
    return [Curve(of, cores) for of in found.values()]


# --- the report ----------------------------------------------------------------------------------

NEAR_BOUND, ABOVE_BOUND = 80, 105  # per cent
_SOURCES: Mapping[str, Source] = {NAMES[LOCAL]: "second", NAMES[HTTP]: "ours"}
_BOUNDS: Mapping[str, Source] = {LOCAL: "bound", HTTP: "model"}


def analyse(results: Results) -> Report:
    """Report curves and bounds. Raises ResultsError if there is no complete run."""
    manifest = results.manifest()
    cores = int(manifest["machine"]["cores"])
    points = points_of(mixed_runs(results))
    if not points:
        raise ResultsError(f"{results.folder} has no run in which all clients were at work")
    found = curves(points, cores)
    made = grouped(points, lambda point: point.line.blocks)
    of_ledger = {n: [curve for curve in found if curve.line.blocks == n] for n in made}
    sentences, plan = Sentences("mixed_clients"), QUICK if manifest["quick"] else FULL
    words = {of: sentences.one(f"{of}_figure") for of in ("throughput", "latency")}
    drawn = [_figures(of, made[n], n, words) for n, of in of_ledger.items()]
    throughputs, latencies = zip(*drawn, strict=True)
    sections = [
        Section("Throughput against clients", sentences("window"), throughputs),
        Section("Latency against clients", sentences("latency"), latencies),
        Section("Bounds of a closed system", sentences("bounds", cores=cores), [_bounds(found)]),
        Section(
            "What a client does",
            sentences("counterparts"),
            [
                Table(
                    "Counterparts", ("The bookstore's", "Ours", "Why"), sentences.rows("bookstore")
                ),
                *_parameters(sentences, plan),
            ],
        ),
    ]
    findings = sentences(
        "findings",
        curves=found,
        cores=cores,
        study=MIXED,
        slower=MIXED_RPC_TIMES_SLOWER,
        places=dict(_places(found)),
        lengths=list(_lengths(found)),
        near=NEAR_BOUND,
        above=ABOVE_BOUND,
    )
    return Report([*rejected_told(points), *findings], sections, [*_metrics(found)])


def _ratios(one: Curve, other: Curve) -> list[tuple[int, float]]:
    """Each N of both curves, with how many times the latency of the other that of one is there."""
    theirs = {point.line.customers: point.response.value for point in other.points}
    ours = {point.line.customers: point.response.value for point in one.points}
    return [(n, seconds / theirs[n]) for n, seconds in ours.items() if n in theirs]


Ratio = tuple[int, float]


def _places(found: Sequence[Curve]) -> Iterator[tuple[int, tuple[Ratio, Ratio]]]:
    """Each ledger, with how many times as long HTTP takes with the fewest and the most clients."""
    for blocks, of in grouped(found, lambda curve: curve.line.blocks).items():
        by_place = {curve.line.place: curve for curve in of}
        if len(by_place) > 1 and (ratios := _ratios(by_place[HTTP], by_place[LOCAL])):
            yield blocks, (ratios[0], ratios[-1])


def _lengths(found: Sequence[Curve]) -> Iterator[tuple[str, Curve, Curve, int, float]]:
    """Each place, with the shortest and the longest ledger, the most clients, and a ratio there."""
    for place, name in NAMES.items():
        of = [curve for curve in found if curve.line.place == place]
        if len(of) > 1 and (ratios := _ratios(of[-1], of[0])):
            yield name, of[0], of[-1], *ratios[-1]


def _metrics(found: Sequence[Curve]) -> Iterator[Metric]:
    for point in (point for curve in found for point in curve.points):
        key = f"[{point.line.place},{point.line.blocks},{point.line.customers}]"
        yield point.throughput.metric(f"throughput{key}", "1/s")
        yield point.response.metric(f"latency{key}", "s")


# --- the study's figures ---------------------------------------------------------------------


def _figures(
    curves: Sequence[Curve], made: Sequence[Point], blocks: int, words: Mapping[str, str]
) -> tuple[Figure, Figure]:
    """Figures 1 and 2 of the study for one ledger. made: its points, accepted or rejected."""
    of_place = {curve.line.place: curve for curve in curves}
    table = Table.of(
        f"A ledger of {blocks} blocks",
        made,
        [
            ("Clients are", lambda p: NAMES[p.line.place]),
            ("N", lambda p: p.line.customers),
            ("Runs counted", lambda p: p.counted),
            ("X / 1/s", lambda p: p.throughput.value),
            ("95 %", lambda p: p.throughput.give_or_take() if p.is_accepted else NONE),
            (
                "Share of its bound / %",
                lambda p: of_place[p.line.place].share(p) if p.is_accepted else None,
            ),
            ("R / ms", lambda p: 1000 * p.response.value),
            ("95 %", lambda p: p.response.give_or_take(1000) if p.is_accepted else NONE),
            ("Service's processor time / ms", lambda p: 1000 * p.service_demand_s),
        ],
        "Processor time is that of an interaction, with the miner's; in process the clients are "
        "part of the service. Rows of rejected runs have no interval, and are used for no finding.",
    )
    xs, ys = (
        _series(curves, made, lambda point: point.throughput, Curve.most_per_s),
        _series(curves, made, lambda point: point.response, Curve.least_s, 1000),
    )
    n, of = Axis("clients N"), f"{blocks} blocks"
    x, r = (Axis(name, is_logarithmic=True) for name in ("interactions / s", "mean latency / ms"))
    return (
        figure(f"Throughput, {of}", words["throughput"], n, x, xs, table),
        figure(f"Latency, {of}", words["latency"], n, r, ys),
    )


def _series(
    curves: Sequence[Curve],
    made: Sequence[Point],
    of: Callable[[Point], Estimate],
    bound: Callable[[Curve, float], float],
    factor: float = 1,
) -> list[Series]:
    """What was measured, with its bounds, and crosses for points without an accepted run."""
    by_place = grouped(made, lambda point: NAMES[point.line.place])
    series = lines(by_place, _SOURCES, lambda point: point.line.customers, of, factor)
    for curve in curves:
        low, high = curve.points[0].line.customers, curve.points[-1].line.customers
        steps = {low + (high - low) * step / 40 for step in range(41)}
        if curve.crossing is not None and low < curve.crossing < high:
            steps.add(curve.crossing)  # where bounds bend
        ns, name = sorted(steps), NAMES[curve.line.place]
        bounds = [factor * bound(curve, n) for n in ns]
        series.append(Series(f"bound {name}", _BOUNDS[curve.line.place], ns, bounds))
    return series


def _bounds(found: Sequence[Curve]) -> Table:
    return Table.of(
        "Bounds",
        found,
        [
            ("Blocks", lambda curve: curve.line.blocks),
            ("Clients are", lambda curve: NAMES[curve.line.place]),
            ("D / ms", lambda curve: times(1000, curve.demand_s)),
            ("D_b / ms", lambda curve: 1000 * curve.gap_s),
            ("1/D_b / 1/s", lambda curve: 1 / curve.gap_s),
            ("D/D_b", lambda curve: curve.crossing),
            ("Best N", lambda curve: curve.best.line.customers),
        ],
    )


def _parameters(sentences: Sentences, plan: Plan) -> Iterator[Table]:
    """Tables 1 and 2 of the study, with what `plan` has instead."""
    counts = zip(*plan.counts.values(), strict=True)
    warm_up, count = (" and ".join(dict.fromkeys(map(str, of))) for of in counts)
    seen = {"warm_up": warm_up, "count": count, "steps": STEPS[READING], "batch": BATCH_FLIGHTS}
    for part, title in (
        ("workload", "Table 1 of the study: the workload"),
        ("books", "Table 2 of the study: the books"),
    ):
        rows = sentences.rows(part, **seen, shares=SHARES)
        yield Table(title, ("Parameter", "Meaning", "The study", "Ours", ""), rows)


EXPERIMENT = Experiment(
    name="mixed-clients",
    study="003",
    title="Mixed clients: reading and writing, in process and over HTTP",
    reproduces="figures 1 and 2",
    about=(
        "1 to 60 clients do interactions without a pause: 60 % read, 30 % read and add a flight, "
        "10 % add a batch of five. Ledgers have 0, 100 and 1000 blocks, and each run has a fresh "
        "copy. Clients are measured once as threads of the ledger's own process and once over "
        "HTTP, where each client keeps its connection. Only the time in which all clients were at "
        "work counts."
    ),
    measure=measure,
    analyse=analyse,
)
