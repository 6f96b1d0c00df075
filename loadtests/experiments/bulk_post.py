"""Measures how fast the service takes flights from many threads, in the three modes of an answer.

The project's own `scripts/bulk_post` posts to a service on a new chain: generated flights, one per
request, from more and more threads. A mode is what the answer promises, so a faster mode promises
less; each has its own curve. Beside the raw rows there is `points.csv`, with a line for each run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter

from loadtests.generation.bulk import MODES, Bulk, bulk_run
from loadtests.generation.run import Generator
from loadtests.grouping import grouped
from loadtests.lab import published
from loadtests.lab.content import Figure, Metric, Report, Section, Table, times
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.posts import BUSY_CLIENT, MINE_INTERVAL_S, Posted, PostsLine, posts
from loadtests.lab.repeated import accepted, lines, rejected_told
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.machine_samples import Sample
from loadtests.models.sample_statistics import mean_of_known, quantile
from loadtests.processes import running

THREADS, QUICK_THREADS = (1, 10, 100, 1000), (1, 10, 100)
RUN_S, QUICK_RUN_S = 6.0, 2.5
REPEATS, QUICK_REPEATS = 3, 1
POINTS = "points"
_SOURCES: dict[str, Source] = {"async": "ours", "sync": "second", "commit": "third"}


@dataclass(frozen=True, slots=True)
class PointLine(PostsLine):
    """A line of `points.csv`."""

    repeat: int


def measure(run: Run) -> None:
    """Let more and more threads post to a new chain, for each repetition and mode."""
    threads, duration_s = run.choose((QUICK_THREADS, QUICK_RUN_S), (THREADS, RUN_S))
    repeats = run.options.reps or run.choose(QUICK_REPEATS, REPEATS)
    settings = {"mine_interval_s": MINE_INTERVAL_S}
    generator = Generator(run.results.folder, run.options.seed, run.say)
    with run.results.table(POINTS, PointLine) as points:
        for repeat, mode in product(range(1, repeats + 1), MODES):
            folder = run.scratch / f"{mode}-{repeat}"
            with running(folder, run.log, settings=settings) as service:
                for count in threads:
                    name = f"{mode}-{count}-{repeat}"
                    _, until_s = bulk_run(
                        generator, service, Bulk(mode, count), name, duration_s=duration_s
                    )
                    points.add(PointLine(name, mode, count, until_s, repeat))


@dataclass(frozen=True)
class Point(Posted[PointLine]):
    """All runs of a mode with one number of threads."""

    def latency_s(self, p: float) -> float | None:
        """The quantile p of the latencies by nearest rank; None if no answer kept the promise."""
        return quantile(self.latencies_s, p) if self.latencies_s else None

    @property
    def less_share(self) -> float:
        """The share of the good answers that promised less than the mode says."""
        good = sum(len(one.window.rows) for one in self.runs)
        return 1 - len(self.latencies_s) / good if good else 0.0

    @property
    def failed(self) -> int:
        """The number of failed requests."""
        return sum(not row.succeeded for one in self.runs for row in one.rows)

    def cpu(self, of: Callable[[Sample], float | None]) -> float | None:
        """The mean over runs of a processor time while all threads post; None if not known."""
        return mean_of_known([mean_of_known(map(of, one.samples)) for one in self.runs])

    @property
    def client_cpu(self) -> float | None:
        """Mean processor time of the program that posts, in cores; None if it is not known."""
        return self.cpu(lambda sample: sample.client_cpu)

    @property
    def is_held_up_by_its_client(self) -> bool:
        """Whether the program that posts was the limit."""
        return (self.client_cpu or 0) > BUSY_CLIENT


def analyse(results: Results) -> Report:
    """Make the report. Raises ResultsError if all threads never posted at once."""
    runs, unfinished = posts(results, POINTS, PointLine)
    if not runs:
        raise ResultsError(f"{results.folder} has no run in which all threads were posting")
    in_order = sorted(runs, key=lambda one: (MODES.index(one.line.mode), one.line.threads))
    points = Point.of_each(in_order, attrgetter("line.mode", "line.threads"))
    counted, sentences = accepted(points), Sentences("bulk_post")
    lengths = {"run_s": RUN_S, "quick_run_s": QUICK_RUN_S, "interval_s": MINE_INTERVAL_S}
    sections = [
        Section("What an answer promises", sentences("promises")),
        Section(
            "Throughput",
            sentences("throughput", busy=BUSY_CLIENT, **lengths),
            [_throughput_figure(points)],
        ),
        Section("Latency", [_LATENCY], [_latency_figure(counted)]),
    ]
    modes = [
        (
            mode,
            max(of, key=lambda point: point.kept_per_s.value),
            max(of, key=lambda point: point.less_share),
        )
        for mode, of in _by_mode(counted).items()
    ]
    seen = {"points": points, "counted": counted, "modes": modes, "busy": BUSY_CLIENT}
    findings = [*sentences("findings", **seen), *rejected_told(points), *unfinished]
    return Report(findings, sections, list(_metrics(counted)))


_LATENCY = "The time from sending to the last byte of an answer that promises what the mode says."


def _by_mode(points: Sequence[Point]) -> dict[str, list[Point]]:
    return grouped(points, lambda point: point.line.mode)


def _throughput_figure(points: Sequence[Point]) -> Figure:
    table = Table.of(
        "Throughput",
        points,
        [
            ("Mode", lambda one: one.line.mode),
            ("Threads", lambda one: one.line.threads),
            ("Flights/s", lambda one: one.kept_per_s.value),
            ("± (95 %)", lambda one: one.kept_per_s.half_width),
            ("Promised less (%)", lambda one: 100 * one.less_share),
            ("Failed", lambda one: one.failed),
            ("Client (cores)", lambda one: one.client_cpu),
            ("Server (cores)", lambda one: one.cpu(lambda sample: sample.server_cpu)),
            ("Runs counted", lambda one: one.counted),
        ],
        "± is the 95 % interval (Student's t) of the mean of the runs. If no run of a point was "
        "accepted, its rejected runs are shown and marked.",
    )
    return figure(
        "Throughput against threads",
        "Flights per second against threads, on a logarithmic axis; crosses are rejected runs.",
        Axis("threads", is_logarithmic=True),
        Axis("flights per second"),
        lines(_by_mode(points), _SOURCES, lambda p: p.line.threads, lambda p: p.kept_per_s),
        table,
    )


def _latency_figure(points: Sequence[Point]) -> Figure:
    series: list[Series] = []
    for mode, of in _by_mode(points).items():
        threads, source = [point.line.threads for point in of], _SOURCES[mode]
        medians, highest = ([times(1000, point.latency_s(p)) for point in of] for p in (0.5, 0.95))
        series += [
            Series(f"{mode}, median", source, threads, medians),
            Series(f"{mode}, 95 %", source, threads, highest, shape="points"),
        ]
    table = Table.of(
        "Latency in milliseconds",
        points,
        [
            ("Mode", lambda one: one.line.mode),
            ("Threads", lambda one: one.line.threads),
            ("Requests", lambda one: len(one.latencies_s)),
            ("50 %", lambda one: times(1000, one.latency_s(0.5))),
            ("90 %", lambda one: times(1000, one.latency_s(0.9))),
            ("95 %", lambda one: times(1000, one.latency_s(0.95))),
            ("99 %", lambda one: times(1000, one.latency_s(0.99))),
            ("Longest", lambda one: times(1000, max(one.latencies_s, default=None))),
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


def _metrics(counted: Sequence[Point]) -> Iterator[Metric]:
    for point in counted:
        name = f"[{point.line.mode}, {point.line.threads} threads]"
        yield point.kept_per_s.metric(f"throughput{name}", "1/s")
        if (median_s := point.latency_s(0.5)) is not None:
            yield Metric(f"latency_median{name}", median_s, "s")


EXPERIMENT = Experiment(
    name="bulk-post",
    study="002",
    title="Posting from many threads",
    reproduces=f"the load of {published.BULK_THREADS[0]} and {published.BULK_THREADS[1]} threads",
    about="More and more threads post flights, one per request, in the three modes of an answer: "
    "async, sync and commit.",
    measure=measure,
    analyse=analyse,
)
