"""Measures how fast the service takes flights from many threads, in the three modes of an answer.

The project's own `scripts/bulk_post` posts to a service on a new chain: generated flights, one per
request, from more and more threads. A mode is what the answer promises, so a faster mode promises
less; each has its own curve. Beside the raw rows there is `points.csv`, with a line for each run.
`cluster` has such runs, too, and reads them here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import Generic, TypeVar

from loadtests.generation.bulk import MODES, Bulk, bulk_run
from loadtests.generation.rows import Row, Window, closed_window
from loadtests.grouping import grouped
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import Repeated, lines, recorded_runs, samples_by_run
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, NothingCounts, Results
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sample
from loadtests.models.estimates import Interval
from loadtests.models.sample_statistics import mean_of_known, quantile
from loadtests.processes import running

THREADS, QUICK_THREADS = (1, 10, 100, 1000), (1, 10, 100)
RUN_S, QUICK_RUN_S = 6.0, 2.5
REPEATS, QUICK_REPEATS = 3, 1
POINTS = "points"
MINED = 201  # the status of an answer about a flight that is in a block
MINE_INTERVAL_S = 0.5
BUSY_CLIENT = 0.7  # cores; above this the program that posts is near its own limit
_SOURCES: dict[str, Source] = {"async": "ours", "sync": "second", "commit": "third"}


@dataclass(frozen=True, slots=True)
class PostsLine(Line):
    """Describes a run of posts."""

    run: str
    mode: str
    threads: int


@dataclass(frozen=True, slots=True)
class PointLine(PostsLine):
    """Describes a run in `points.csv`."""

    repeat: int


def measure(run: Run) -> None:
    """Let more and more threads post to a new chain, for each repetition and mode."""
    threads, duration_s = run.choose((QUICK_THREADS, QUICK_RUN_S), (THREADS, RUN_S))
    repeats = run.options.reps or run.choose(QUICK_REPEATS, REPEATS)
    settings = {"mine_interval_s": MINE_INTERVAL_S}
    generator = run.generator()
    with run.results.table(POINTS, PointLine) as points:
        for repeat, mode in product(range(1, repeats + 1), MODES):
            folder = run.scratch / f"{mode}-{repeat}"
            with running(folder, run.log, settings=settings) as service:
                for count in threads:
                    name = f"{mode}-{count}-{repeat}"
                    bulk_run(generator, service, Bulk(mode, count), name, duration_s=duration_s)
                    points.add(PointLine(name, mode, count, repeat))


# --- runs of posts -------------------------------------------------------------------------------

RunLine = TypeVar("RunLine", bound=PostsLine)


@dataclass(frozen=True)
class Posts(Generic[RunLine]):
    """Holds a run, all its rows, and the window and samples of the time while all threads post."""

    line: RunLine
    rows: Sequence[Row]
    window: Window
    samples: Sequence[Sample]

    @cached_property
    def kept(self) -> list[Row]:
        """Return good answers that promise what their mode says: in commit mode, mined flights."""
        is_commit = self.line.mode == "commit"
        return [row for row in self.window.rows if row.status == MINED or not is_commit]


@dataclass(frozen=True)
class Posted(Repeated[Posts[RunLine]], Generic[RunLine]):
    """Holds all runs of a load."""

    @cached_property
    def kept_per_s(self) -> Interval:
        """Return the rate of answers that promise what their mode says."""
        return self.over(lambda run: len(run.kept) / (run.window.end_s - run.window.start_s))

    @cached_property
    def latencies_s(self) -> list[float]:
        return [row.closed_response_s for run in self.runs for row in run.kept]


def posts(
    results: Results, table: str, kind: type[RunLine]
) -> tuple[list[Posts[RunLine]], list[str]]:
    """Return the runs that the table has lines of, and a sentence about each without figures."""
    samples, runs, unfinished = samples_by_run(results), list[Posts[RunLine]](), []
    for line, rows in recorded_runs(results, table, kind):
        try:
            window = closed_window(rows)
        except ValueError as problem:
            unfinished.append(f"Run {line.run} has no figures: {problem}.")
        else:
            start_s, end_s = window.start_s, window.end_s + 1
            during = [
                sample for sample in samples.get(line.run, ()) if start_s < sample.at_s <= end_s
            ]
            runs.append(Posts(line, rows, window, during))
    return runs, unfinished


@dataclass(frozen=True)
class Point(Posted[PointLine]):
    """Holds all runs of a mode with one number of threads."""

    def latency_s(self, p: float) -> float | None:
        """Return the quantile p of the latencies (s); None if no answer kept the promise."""
        return quantile(self.latencies_s, p) if self.latencies_s else None

    @property
    def less_share(self) -> float:
        """Return the share of the good answers that promised less than the mode says."""
        good = sum(len(run.window.rows) for run in self.runs)
        return 1 - len(self.latencies_s) / good if good else 0.0

    @property
    def failed(self) -> int:
        return sum(not row.succeeded for run in self.runs for row in run.rows)

    def cores(self, cpu: Callable[[Sample], float | None]) -> float | None:
        """Return the mean over runs of how many cores were used while all posted, if known."""
        return mean_of_known(mean_of_known(map(cpu, run.samples)) for run in self.runs)

    @property
    def client_cores(self) -> float | None:
        """Return how many cores the program that posts used; None if it is not known."""
        return self.cores(lambda sample: sample.client_cpu)


def analyse(results: Results) -> Report:
    """Report throughput and latency. Raises NothingCounts if all threads never posted at once."""
    runs, unfinished = posts(results, POINTS, PointLine)
    if not runs:
        raise NothingCounts(f"{results.folder} has no run that counts in which all threads posted")
    in_order = sorted(runs, key=lambda run: (MODES.index(run.line.mode), run.line.threads))
    points = Point.of_each(in_order, attrgetter("line.mode", "line.threads"))
    sentences = Sentences("bulk_post")
    lengths = {"run_s": RUN_S, "quick_run_s": QUICK_RUN_S, "interval_s": MINE_INTERVAL_S}
    sections = [
        Section("What an answer promises", sentences("promises")),
        Section(
            "Throughput",
            sentences("throughput", busy=BUSY_CLIENT, **lengths),
            [_throughput_figure(points)],
        ),
        Section("Latency", sentences("latency"), [_latency_figure(points)]),
    ]
    findings = sentences(
        "findings",
        points=points,
        modes=_by_mode(points),
        slow=sum((point.client_cores or 0) > BUSY_CLIENT for point in points),
        busy=BUSY_CLIENT,
    )
    return Report([*findings, *unfinished], sections, list(_metrics(points)))


def _by_mode(points: Sequence[Point]) -> dict[str, list[Point]]:
    return grouped(points, lambda point: point.line.mode)


def _throughput_figure(points: Sequence[Point]) -> Figure:
    table = Table.from_items(
        "Throughput",
        points,
        [
            ("Mode", lambda point: point.line.mode),
            ("Threads", lambda point: point.line.threads),
            ("Flights/s", lambda point: point.kept_per_s),
            ("Promised less (%)", lambda point: 100 * point.less_share),
            ("Failed", lambda point: point.failed),
            ("Client (cores)", lambda point: point.client_cores),
            ("Server (cores)", lambda point: point.cores(lambda sample: sample.server_cpu)),
            ("Runs", lambda point: len(point.runs)),
        ],
        "± is the 95 % interval (Student's t) of the mean of the runs.",
    )
    return figure(
        "Throughput against threads",
        "Flights per second against threads, on a logarithmic axis.",
        Axis("threads", is_logarithmic=True),
        Axis("flights per second"),
        lines(_by_mode(points), _SOURCES, lambda p: p.line.threads, lambda p: p.kept_per_s),
        table,
    )


def _latency_figure(points: Sequence[Point]) -> Figure:
    series: list[Series] = []
    for mode, of_mode in _by_mode(points).items():
        threads, source = [point.line.threads for point in of_mode], _SOURCES[mode]
        medians, highest = (
            [times(1000, point.latency_s(p)) for point in of_mode] for p in (0.5, 0.95)
        )
        series += [
            Series(f"{mode}, median", source, threads, medians),
            Series(f"{mode}, 95 %", source, threads, highest, shape="points"),
        ]
    table = Table.from_items(
        "Latency in milliseconds",
        points,
        [
            ("Mode", lambda point: point.line.mode),
            ("Threads", lambda point: point.line.threads),
            ("Requests", lambda point: len(point.latencies_s)),
            ("50 %", lambda point: times(1000, point.latency_s(0.5))),
            ("90 %", lambda point: times(1000, point.latency_s(0.9))),
            ("95 %", lambda point: times(1000, point.latency_s(0.95))),
            ("99 %", lambda point: times(1000, point.latency_s(0.99))),
            ("Longest", lambda point: times(1000, point.latency_s(1))),
        ],
        "Percentiles by nearest rank over all counted runs of a point.",
    )
    return figure(
        "Latency against threads",
        "Both axes are logarithmic; lines are medians, single points are 95th percentiles. In a "
        "closed system latency grows with the threads once throughput does not.",
        Axis("threads", is_logarithmic=True),
        Axis("latency / ms", is_logarithmic=True),
        series,
        table,
    )


def _metrics(points: Sequence[Point]) -> Iterator[Metric]:
    for point in points:
        name = f"[{point.line.mode}, {point.line.threads} threads]"
        yield Metric.of_amount(f"throughput{name}", point.kept_per_s, "1/s")
        if (median_s := point.latency_s(0.5)) is not None:
            yield Metric(f"latency_median{name}", median_s, "s")


EXPERIMENT = Experiment.described("bulk-post", "002", measure, analyse)
