"""Measures how fast the service takes flights from many threads, in the three modes of an answer.

The project's own `scripts/bulk_post` posts to a service on a new chain: generated flights, one per
request, from more and more threads. A mode is what the answer promises, so a faster mode promises
less; each has its own curve.

Tables: `requests.csv`, `samples.csv` and `runs.csv` as in `loadtests.generation`; `points.csv` has
the mode, threads and repetition of each run, and when it was told to end (seconds).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from loadtests.generation.bulk import MODES, Bulk, bulk_run, busy_window
from loadtests.generation.rows import Row
from loadtests.generation.rules import judge
from loadtests.generation.run import SAMPLES, append_verdict
from loadtests.generation.samples import Sample, read
from loadtests.generation.window import Window
from loadtests.lab import published
from loadtests.lab.experiment import Experiment, Mode, Run
from loadtests.lab.raw import accepted_by_run, rows_by_run
from loadtests.lab.repeated import (
    Estimate,
    accepted,
    estimate,
    measured,
    rejected,
    rejected_told,
    that_count,
)
from loadtests.lab.report.content import Cell, Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Shape, Source, drawn
from loadtests.lab.results import Results, ResultsError, TableWriter
from loadtests.models.samples import quantile
from loadtests.processes import Service, running

THREADS, QUICK_THREADS = (1, 10, 100, 1000), (1, 10, 100)
RUN_S, QUICK_RUN_S = 6.0, 2.5
REPEATS, QUICK_REPEATS = 3, 1
MINE_INTERVAL_S = 0.5
MINED, COMMITTED = 201, "post-commit"  # a status, and a kind of request
BUSY_CLIENT = 0.7  # cores; above this the generator is near its own limit
POINTS = "points"
PERCENTILES = (0.5, 0.9, 0.95, 0.99)
PROMISES = {
    "async": (
        "accepted: the flight has its id and is written, and is on the disk within half a second; "
        "it is lost if the power fails before that"
    ),
    "sync": "durable: the flight is on the disk, synced, before the answer",
    "commit": (
        "mined: the flight is in a block and in the index. At most half of a worker's threads wait "
        "for that; further requests are answered at once with the promise of sync and status 202, "
        "which does not count here as an answer of this mode"
    ),
}
_SOURCES: dict[str, Source] = {"async": "ours", "sync": "second", "commit": "third"}


# --- measuring -----------------------------------------------------------------------------------


def measure(run: Run) -> None:
    """Let more and more threads post to a new chain, for each repetition and mode."""
    threads = QUICK_THREADS if run.options.quick else THREADS
    repeats = run.options.reps or int(run.choose(QUICK_REPEATS, REPEATS))
    settings = {"mine_interval_s": MINE_INTERVAL_S}
    with run.results.table(POINTS, ("run", "mode", "threads", "repeat", "until_s")) as points:
        for repeat, mode in product(range(1, repeats + 1), MODES):
            folder = run.scratch / f"{mode}-{repeat}"
            with running(folder, run.log, settings=settings) as service:
                for count in threads:
                    _post(run, service, Bulk(mode, count), repeat, points)


def _post(run: Run, service: Service, bulk: Bulk, repeat: int, points: TableWriter) -> None:
    name = f"{bulk.mode}-{bulk.threads}-{repeat}"
    record, until_s = bulk_run(
        service,
        bulk,
        run=name,
        folder=run.results.folder,
        seed=run.options.seed,
        duration_s=run.choose(QUICK_RUN_S, RUN_S),
        say=run.say,
    )
    points.write(run=name, mode=bulk.mode, threads=bulk.threads, repeat=repeat, until_s=until_s)
    # The study used such a program, so its own limit is reported and not a reason to reject.
    append_verdict(run.results.folder, record, judge(replace(record.facts(), client_cpu=None)))


# --- analysing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. window: while all threads post. rows: those of the whole run. CPUs are in cores."""

    run: str
    window: Window
    rows: list[Row]
    client_cpu: float | None
    server_cpu: float | None
    is_accepted: bool

    @property
    def kept(self) -> list[Row]:
        """Good answers that promise what their mode says: in commit mode, only mined flights."""
        good = self.window.rows
        return [row for row in good if row.status == MINED or row.kind != COMMITTED]

    @property
    def kept_per_s(self) -> float:
        """The throughput of the answers in `kept`."""
        return len(self.kept) / (self.window.end_s - self.window.start_s)


@dataclass(frozen=True, slots=True)
class Point:
    """All runs of a mode with one number of threads.

    counted: the accepted runs, or all if none was accepted. made: number of runs.
    """

    mode: str
    threads: int
    counted: list[Measured]
    made: int

    @property
    def is_accepted(self) -> bool:
        """Whether the runs in `counted` were accepted."""
        return self.counted[0].is_accepted

    @property
    def throughput(self) -> Estimate:
        """The throughput over runs."""
        return estimate([one.kept_per_s for one in self.counted])

    @property
    def throughput_per_s(self) -> float:
        """The mean throughput of the runs."""
        return self.throughput.value

    @property
    def latencies_s(self) -> list[float]:
        """The latencies in all runs together."""
        return [row.closed_response_s for one in self.counted for row in one.kept]

    def latency_s(self, p: float) -> float | None:
        """The quantile p of the latencies by nearest rank; None if no answer kept the promise."""
        return quantile(self.latencies_s, p) if self.latencies_s else None

    @property
    def less_share(self) -> float:
        """The share of the good answers that promised less than the mode says."""
        good = sum(len(one.window.rows) for one in self.counted)
        return 1 - len(self.latencies_s) / good if good else 0.0

    @property
    def failed(self) -> int:
        """The number of failed requests."""
        return sum(not row.succeeded for one in self.counted for row in one.rows)

    def cpu(self, whose: str) -> float | None:
        """Mean processor time of "client" or "server", in cores; None if it is not known."""
        values = [getattr(one, f"{whose}_cpu") for one in self.counted]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None


def analyse(results: Results) -> Report:
    """Make the report. Raises ResultsError if all threads never posted at once."""
    points, unfinished = _points(results)
    if not points:
        raise ResultsError(f"{results.folder} has no run in which all threads were posting")
    sections = [
        Section(
            "What an answer promises",
            [f"mode={mode}: {promise}." for mode, promise in PROMISES.items()],
        ),
        Section("Throughput", _THROUGHPUT.split("\n\n"), [_throughput_figure(points)]),
        Section(
            "Latency",
            [
                (
                    "The time from sending to the last byte of an answer that promises what the "
                    "mode says."
                )
            ],
            [_latency_figure(points), _latency_table(points)],
        ),
    ]
    return Report([*_findings(points), *unfinished], sections, _metrics(points))


_THROUGHPUT = f"""\
Flights per second whose answer promises what the mode says, one flight per request, while all
threads were posting. Each thread waits for its answer before it posts again, so this is the
throughput of that many clients, not the highest that the service could reach.

The study posted 10,000 transactions from each of 100 and 1000 threads and printed no throughput;
here the threads post for {RUN_S:g} s ({QUICK_RUN_S:g} s in a quick run), because ten million posts
would take hours, and throughput is steady after seconds. The study's transactions went through
consensus, by a single node; here they do not: the experiment cluster measures that. The miner
makes a block every {MINE_INTERVAL_S:g} s, so that commit mode does not wait a minute. bulk_post is
a Python program: where it needs more than {BUSY_CLIENT:g} cores, the program is the limit, and the
service could do more."""


def _points(results: Results) -> tuple[list[Point], list[str]]:
    """The points, and a sentence about each run that has no figures."""
    rows, accepted = rows_by_run(results), accepted_by_run(results)
    samples = read(results.folder / SAMPLES)
    runs: dict[tuple[str, int], list[Measured]] = {}
    unfinished = []
    for point in results.rows(POINTS):
        name = point["run"]
        try:
            window = busy_window(rows[name], float(point["until_s"]))
        except ValueError as problem:
            unfinished.append(f"Run {name} has no figures: {problem}.")
            continue
        one = _measured(name, window, rows[name], samples.get(name, []), accepted[name])
        runs.setdefault((point["mode"], int(point["threads"])), []).append(one)
    return [_point(mode, threads, of) for (mode, threads), of in runs.items()], unfinished


def _point(mode: str, threads: int, runs: list[Measured]) -> Point:
    return Point(mode, threads, that_count(runs), len(runs))


def _measured(
    run: str, window: Window, rows: list[Row], samples: Sequence[Sample], is_accepted: bool
) -> Measured:
    during = [one for one in samples if window.start_s < one.at_s <= window.end_s + 1]
    client_cpu = _mean([one.client_cpu for one in during])
    server_cpu = _mean([one.server_cpu for one in during if one.server_cpu is not None])
    return Measured(run, window, rows, client_cpu, server_cpu, is_accepted)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _modes(points: Sequence[Point]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.threads):
        found.setdefault(point.mode, []).append(point)
    return {mode: found[mode] for mode in MODES if mode in found}


def _throughput_figure(points: Sequence[Point]) -> Figure:
    series = [
        measured(mode, _SOURCES[mode], [one.threads for one in of], [one.throughput for one in of])
        for mode, of in _modes(accepted(points)).items()
    ]
    without = [one for one in points if not one.is_accepted]
    series += rejected([one.threads for one in without], [one.throughput_per_s for one in without])
    x, y = Axis("threads", is_logarithmic=True), Axis("flights per second")
    rows: list[list[Cell]] = [
        [
            mode,
            point.threads,
            point.throughput_per_s,
            point.throughput.half_width,
            100 * point.less_share,
            point.failed,
            point.cpu("client"),
            point.cpu("server"),
            f"{len(point.counted)} of {point.made}" + ("" if point.is_accepted else ", rejected"),
        ]
        for mode, of in _modes(points).items()
        for point in of
    ]
    columns = (
        *("Mode", "Threads", "Flights/s", "± (95 %)", "Promised less (%)", "Failed"),
        *("Client (cores)", "Server (cores)", "Runs counted"),
    )
    note = (
        "± is the 95 % interval (Student's t) of the mean of the runs. If no run of a point was "
        "accepted, its rejected runs are shown and marked."
    )
    table = Table("Throughput", columns, rows, note)
    told = "Flights per second against threads, on a logarithmic axis; crosses are rejected runs."
    if counted := accepted(points):
        best = max(counted, key=lambda point: point.throughput_per_s)
        told += (
            f" The highest throughput is {best.throughput_per_s:,.0f} with {best.threads} threads "
            f"in mode {best.mode}."
        )
    return Figure("Throughput against threads", drawn(x, y, series), told, table)


def _latency_figure(points: Sequence[Point]) -> Figure:
    series, modes = [], _modes(accepted(points))
    for mode, of in modes.items():
        threads = [point.threads for point in of]
        for name, p, is_line in (("median", 0.5, True), ("95 %", 0.95, False)):
            ys = [point.latency_s(p) for point in of]
            shape: Shape = "line" if is_line else "points"
            series.append(Series(f"{mode}, {name}", _SOURCES[mode], threads, ys, shape=shape))
    x, y = Axis("threads", is_logarithmic=True), Axis("latency / s", is_logarithmic=True)
    rows: list[list[Cell]] = [
        [mode, point.threads, point.latency_s(0.5), point.latency_s(0.95)]
        for mode, of in modes.items()
        for point in of
    ]
    table = Table("Latency", ("Mode", "Threads", "Median (s)", "95 % (s)"), rows)
    told = (
        "Both axes are logarithmic; lines are medians, single points are 95th percentiles. In a "
        "closed system latency grows with the threads once throughput does not."
    )
    return Figure("Latency against threads", drawn(x, y, series), told, table)


def _latency_table(points: Sequence[Point]) -> Table:
    rows: list[list[Cell]] = []
    for mode, of in _modes(accepted(points)).items():
        for point in of:
            values = [point.latency_s(p) for p in PERCENTILES]
            known = point.latencies_s
            most = max(known) if known else None
            in_ms = [None if value is None else 1000 * value for value in [*values, most]]
            rows.append([mode, point.threads, len(known), *in_ms])
    names = [f"{100 * p:g} %" for p in PERCENTILES]
    note = "Percentiles by nearest rank over all counted runs of a point."
    columns = ("Mode", "Threads", "Requests", *names, "Longest")
    return Table("Latency in milliseconds", columns, rows, note)


def _findings(points: Sequence[Point]) -> list[str]:
    findings = []
    counted = accepted(points)
    for mode, of in _modes(counted).items():
        best = max(of, key=lambda point: point.throughput_per_s)
        median_s = best.latency_s(0.5)
        said = f"mode={mode}: at most {best.throughput_per_s:,.0f} flights per second, with "
        said += f"{best.threads} threads"
        said += f"; the median answer then took {1000 * median_s:.3g} ms." if median_s else "."
        findings.append(said)
        worst = max(of, key=lambda point: point.less_share)
        if worst.less_share > 0:
            findings.append(
                f"mode={mode}: with {worst.threads} threads {100 * worst.less_share:.0f} % of the "
                "answers promised only what sync does, because enough requests waited for a "
                "block already; these answers do not count."
            )
    busy = [point for point in counted if (point.cpu("client") or 0) > BUSY_CLIENT]
    if busy:
        findings.append(
            f"At {len(busy)} of {len(counted)} points bulk_post itself needed more than "
            f"{BUSY_CLIENT:g} cores: there the program is the limit, and not the service."
        )
    if failed := sum(point.failed for point in points):
        findings.append(f"Failed requests: {failed}.")
    return [*findings, *rejected_told(points)]


def _metrics(points: Sequence[Point]) -> list[Metric]:
    metrics = []
    for point in accepted(points):
        name = f"[{point.mode}, {point.threads} threads]"
        metrics.append(point.throughput.metric(f"throughput{name}", "1/s"))
        if (median_s := point.latency_s(0.5)) is not None:
            metrics.append(Metric(f"latency_median{name}", median_s, "s"))
    return metrics


EXPERIMENT = Experiment(
    name="bulk-post",
    study="002",
    title="Posting from many threads",
    reproduces=f"the load of {published.BULK_THREADS[0]} and {published.BULK_THREADS[1]} threads",
    about="More and more threads post flights, one per request, in the three modes of an answer: "
    "async, sync and commit.",
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
