"""Reports the service times of study 000: five requests, one customer. Times are measured seconds.

`service_time_measurements` measures. The mean is that of the accepted runs, with Student's interval
over them, or over batches of a single run. The variance is that of all their requests. Numbers of
blocks read from files are counted by the servers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from loadtests.experiments.service_time_measurements import (
    INDEX,
    KINDS,
    PLAN,
    QUICK_SCALE,
    SCALE,
    SCAN,
    STUDY,
    PlanLine,
    measure,
)
from loadtests.grouping import grouped
from loadtests.lab import content
from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Mode
from loadtests.lab.one_customer import Recorded, recorded
from loadtests.lab.published import (
    BLOCKS,
    NETWORK_CACHE_BLOCKS,
    SCAN_BLOCKS_READ,
    SERVICE_TIMES,
    ServiceTime,
)
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import (
    Interval,
    Verdict,
    confidence_interval,
    mean_over_runs,
    verdict,
)
from loadtests.models.sample_statistics import mean_of, summary
from loadtests.questions import KINDS as QUESTIONS
from loadtests.servers.study import CHECK_MS, READ_MS

WAYS = {STUDY: "the study's storage, here", SCAN: "our scan", INDEX: "our index"}
PUBLISHED = "the study, on its Pi"
_SOURCES: dict[str, Source] = {STUDY: "second", SCAN: "ours", INDEX: "model"}
BLOCK_S = (READ_MS + CHECK_MS) / 1000  # at K = 1
_COUNTED_AS = {STUDY: "disk_reads", SCAN: "file"}  # blocks read; our index does not count them


@dataclass(frozen=True)
class Cell:
    """A request by one way. turns: turn -> its accepted run. rejected: number of other runs.

    blocks: length of the chain. scale: K, 1 for a real disk.
    """

    way: str
    blocks: int
    scale: float
    turns: Mapping[int, Recorded]
    rejected: int

    @cached_property
    def times_s(self) -> list[float]:
        """The service times of all requests that count."""
        return [time_s for run in self.turns.values() for time_s in run.times_s]

    @property
    def made(self) -> int:
        """The number of all its runs."""
        return len(self.turns) + self.rejected

    @property
    def is_known(self) -> bool:
        """Whether there are enough requests, two, for a mean and a variance."""
        return len(self.times_s) > 1

    @cached_property
    def mean_s(self) -> Interval:
        """E[S]."""
        return mean_over_runs([run.times_s for run in self.turns.values()])

    @property
    def service(self) -> ServiceTime:
        """E[S], and the variance of all requests."""
        return ServiceTime(self.mean_s.estimate, summary(self.times_s).variance)

    @cached_property
    def reads(self) -> float:
        """The mean number of blocks that a request reads from files; 0 if it is not counted."""
        name = _COUNTED_AS.get(self.way, "")
        counts = [one.count(name) for run in self.turns.values() for one in run.asked]
        return mean_of(counts) if counts else 0.0


Cells = dict[tuple[str, str], Cell]  # (way, kind), in alphabetical order


def cells(results: Results) -> Cells:
    """The cells of all requests and ways that have a run. Raises ResultsError without a plan."""
    lines = results.lines(PLAN, PlanLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    made = grouped([line for line in lines if line.run in runs], lambda line: (line.way, line.kind))
    found = {}
    for key, of in sorted(made.items(), key=lambda one: one[0]):
        turns = {line.turn: runs[line.run] for line in of if runs[line.run].is_accepted}
        found[key] = Cell(key[0], of[0].blocks, of[0].scale, turns, len(of) - len(turns))
    return found


def known(found: Cells, way: str, kind: str) -> Cell | None:
    """The cell with a mean; None if there is none."""
    cell = found.get((way, kind))
    return cell if cell and cell.is_known else None


def times_faster(found: Cells, way: str, kind: str) -> Interval | None:
    """How many times as fast a way is as the study's storage, from the turns that both have.

    None if it is not known, and with an emulated disk.
    """
    study, ours = known(found, STUDY, kind), known(found, way, kind)
    if study is None or ours is None or ours.scale != 1:
        return None
    ratios = [
        mean_of(study.turns[turn].times_s) / mean_of(run.times_s)
        for turn, run in ours.turns.items()
        if turn in study.turns
    ]
    return confidence_interval(ratios) if len(ratios) > 1 else None


@dataclass(frozen=True, slots=True)
class Predicted:
    """E[S] = blocks read × time of a block. share: measured over predicted."""

    mean_s: float
    share: Interval

    @property
    def verdict(self) -> Verdict:
        """Whether the measurement lies within the tolerance of the prediction."""
        return verdict(self.share.plus(-1), 1)


def predicted(cell: Cell, block_s: float) -> Predicted:
    """The prediction for a known cell that has read blocks."""
    mean_s = cell.reads * block_s
    return Predicted(mean_s, cell.mean_s.times(1 / mean_s))


def emulated(found: Cells) -> Mapping[tuple[str, str], Predicted]:
    """Predictions for cells with an emulated disk, where a block takes BLOCK_S/K."""
    return {
        key: predicted(cell, BLOCK_S / cell.scale)
        for key, cell in found.items()
        if cell.is_known and cell.reads and cell.scale != 1
    }


def refill(found: Cells) -> Predicted | None:
    """get_transaction by the study's storage, predicted from a block's time in flight_counter.

    None without measurements, or if most requests find their block in a cache, as in a chain that
    is too short.
    """
    scan, lookup = (known(found, STUDY, kind) for kind in ("flight_counter", "get_transaction"))
    if not (scan and scan.reads and lookup and lookup.reads >= 1):
        return None
    return predicted(lookup, scan.mean_s.estimate / scan.reads)


def refill_on_the_pi() -> tuple[float, float]:
    """Predicted and published get_transaction of the study (s), from its flight_counter.

    A block of its chain is in one of two caches with a probability of 38/522; a miss reads 19.
    """
    block_s = SERVICE_TIMES["flight_counter"].mean_s / SCAN_BLOCKS_READ
    misses = 1 - 2 * NETWORK_CACHE_BLOCKS / BLOCKS
    read_s = misses * NETWORK_CACHE_BLOCKS * block_s
    return read_s, SERVICE_TIMES["get_transaction"].mean_s


# --- the report --------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report the study's table with ours added. Raises ResultsError if there is no run."""
    found, sentences = cells(results), Sentences("service_time")
    if not found:
        raise ResultsError(f"{results.folder} has no run with a request")
    told = sentences("told", cell=next(iter(found.values())), blocks=BLOCKS)
    of_study = [SERVICE_TIMES[kind].mean_s for kind in QUESTIONS]
    findings = sentences(
        "findings",
        found=found,
        ways=WAYS,
        published=SERVICE_TIMES,
        scans={way: known(found, way, "flight_counter") for way in _ways(found)},
        faster={way: ratios for way in (SCAN, INDEX) if (ratios := _faster(found, way))},
        alike={way: means for way in _ways(found) if (means := _alike(found, way))},
        grows=max(of_study) / min(of_study) - 1,
        refill=refill(found),
        on_the_pi=refill_on_the_pi(),
        emulated=emulated(found),
    )
    figure_of_means = _figure(found, sentences.one("figure"))
    sections = [
        Section("Service times", told, [_table(found), figure_of_means]),
        Section("What a service time consists of", sentences("reads"), [_reads_table(found)]),
    ]
    return Report(findings, sections, [*_metrics(found)])


def _ways(found: Cells) -> list[str]:
    return [way for way in WAYS if any(key[0] == way for key in found)]


def _faster(found: Cells, way: str) -> list[tuple[str, str]]:
    """How many times as fast a way is, by kind of request, as far as it is known."""
    ratios = {kind: times_faster(found, way, kind) for kind in KINDS}
    return [(kind, estimated(of).plus_minus()) for kind, of in ratios.items() if of]


def _alike(found: Cells, way: str) -> list[tuple[str, float]]:
    """The means of the three questions about flights, the quickest first; none if one lacks."""
    means = {kind: cell.mean_s.estimate for kind in QUESTIONS if (cell := known(found, way, kind))}
    return sorted(means.items(), key=lambda one: one[1]) if len(means) == len(QUESTIONS) else []


def _table(found: Cells) -> Table:
    rows: list[Sequence[content.Cell]] = []
    for kind in KINDS:
        rows.append((kind, PUBLISHED, None, *_moments(SERVICE_TIMES[kind], None), None, None))
        rows += [_row(found, way, kind) for way in WAYS if (way, kind) in found]
    columns: Sequence[str] = (
        *("Request", "Answered by", "Requests", "E[S] / s", "95 %, ±"),
        *("Variance / s²", "cv", "L / 1/s", "K·E[S] / s", "Times as fast"),
    )
    if all(cell.scale == 1 for cell in found.values()):
        rows = [(*row[:8], row[9]) for row in rows]
        columns = (*columns[:8], columns[9])
    note = (
        "L = 1/E[S]. Times as fast: compared with the study's storage on this machine, with the "
        "95 % interval over turns."
    )
    return Table("Service times", columns, rows, note, digits=4)


def _row(found: Cells, way: str, kind: str) -> Sequence[content.Cell]:
    cell = found[way, kind]
    first = (kind, WAYS[way], len(cell.times_s))
    if not cell.is_known:
        return (*first, *[None] * 7)
    scaled = None if cell.scale == 1 else cell.scale * cell.mean_s.estimate
    ratio = None if way == STUDY else times_faster(found, way, kind)
    faster = estimated(ratio).plus_minus() if ratio else None
    return (*first, *_moments(cell.service, cell.mean_s.half_width), scaled, faster)


def _moments(of: ServiceTime, half_width: float | None) -> Sequence[content.Cell]:
    return (of.mean_s, half_width, of.variance_s2, of.variation, 1 / of.mean_s)


def _figure(found: Cells, told: str) -> Figure:
    """Bars on a logarithmic axis, because the ways differ by powers of ten."""
    names = [kind.replace("_", "\n", 1) for kind in KINDS]
    published = [SERVICE_TIMES[kind].mean_s for kind in KINDS]
    series = [Series(PUBLISHED, "study", names, published, shape="bars")]
    for way in _ways(found):
        of_way = [known(found, way, kind) for kind in KINDS]
        means = [estimated(one.mean_s.times(one.scale)) if one else None for one in of_way]
        series.append(measured(WAYS[way], _SOURCES[way], names, means, shape="bars"))
    is_emulated = any(cell.scale != 1 for cell in found.values())
    unit = "K·E[S] / s" if is_emulated else "E[S] / s"
    rows = [(kind, one.name, one.ys[at]) for at, kind in enumerate(KINDS) for one in series]
    table = Table("Mean service times", ("Request", "Answered by", unit), rows, digits=4)
    x, y = Axis("request"), Axis(unit, is_logarithmic=True)
    return figure("Mean service times", told, x, y, series, table)


def _reads_table(found: Cells) -> Table:
    waits = emulated(found)
    means_ms = {
        key: 1000 * cell.mean_s.estimate
        for key, cell in found.items()
        if cell.reads and cell.is_known
    }
    columns: list[content.Column[tuple[str, str]]] = [
        ("Request", lambda of: of[1]),
        ("Answered by", lambda of: WAYS[of[0]]),
        ("Blocks", lambda of: found[of].blocks),
        ("Blocks read", lambda of: found[of].reads),
        ("E[S] / ms", lambda of: means_ms[of]),
        ("E[S] per read / ms", lambda of: means_ms[of] / found[of].reads),
    ]
    if waits:
        columns.append(("Blocks read × 85/K ms / ms", lambda of: 1000 * waits[of].mean_s))
    note = "By the study's profile reading a block took 46 ms and checking 39 ms; 503 of 522 read."
    return Table.of("Blocks read", means_ms, columns, note)


def _metrics(found: Cells) -> Iterator[Metric]:
    for (way, kind), cell in found.items():
        if cell.is_known:
            yield estimated(cell.mean_s).metric(f"service_time[{way},{kind}]", "s")
            yield Metric(f"cv[{way},{kind}]", cell.service.variation)
    for (way, kind), one in emulated(found).items():  # no unit: to compare results at different K
        yield estimated(one.share).metric(f"service_time_ratio[{way},{kind}]", "")


EXPERIMENT = Experiment(
    name="service-time",
    study="000",
    title="Service time: five requests, one customer",
    reproduces="the table of service times",
    about=(
        "One customer asks again as soon as an answer comes, so there is no waiting and a response "
        "time is a service time. The mean, variance and rate L = 1/E[S] of each of the study's "
        "five requests are measured in three ways: with the study's storage on this machine, with "
        "our scan of all blocks, and with our index."
    ),
    modes=(Mode.REAL, Mode.EMULATED),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
    emulated_so=(
        "In the study's way blocks are nearly empty, so that a block takes these times on any "
        "machine; in our scan they are full ones, a wait fills up the time of reading, and looking "
        "at the flights comes besides."
    ),
    waited=": reading a block waits {read_ms} ms, its check {check_ms} ms",
)
