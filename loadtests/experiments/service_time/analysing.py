"""Makes the report of service times from rows. Times are measured seconds.

The mean is that of the accepted runs, with Student's interval over them, or over batches of a
single run. The variance is that of all their requests. Numbers of blocks read from files are
counted by the servers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from loadtests.experiments.service_time.measuring import INDEX, KINDS, PLAN, SCAN, STUDY, PlanLine
from loadtests.grouping import grouped
from loadtests.lab import content
from loadtests.lab.content import Figure, Metric, Report, Section, Table, capital, told_s
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
from loadtests.models.estimates import (
    TOLERANCE,
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
_VERDICTS = {
    Verdict.AGREES: f"agrees within {TOLERANCE * 100:g} %",
    Verdict.DISAGREES: f"off by more than {TOLERANCE * 100:g} %",
    Verdict.NOT_DECIDED: f"whether within {TOLERANCE * 100:g} % is not decided",
}
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
    found = cells(results)
    if not found:
        raise ResultsError(f"{results.folder} has no run with a request")
    sections = [
        Section("Service times", [*_told(found)], [_table(found), _figure(found)]),
        Section("What a service time consists of", [_READS_TOLD], [_reads_table(found)]),
    ]
    return Report([*_findings(found)], sections, [*_metrics(found)])


def _ways(found: Cells) -> list[str]:
    return [way for way in WAYS if any(key[0] == way for key in found)]


# --- findings ----------------------------------------------------------------------------------


def _findings(found: Cells) -> Iterator[str]:
    for way in _ways(found):
        yield _way_finding(found, way)
    for way in (SCAN, INDEX):
        yield from _faster(found, way)
    for way in _ways(found):
        yield from _alike(found, way)
    if prediction := refill(found):
        on_pi, published = refill_on_the_pi()
        yield (
            "get_transaction of the study's storage is a refill of its cache: "
            f"{found[STUDY, 'get_transaction'].reads:.3g} blocks per request, at the time per "
            f"block of a scan, take {_off(prediction)}. From the published figures it would be "
            f"{on_pi:.3g} s, and {published:.3g} s were published."
        )
    for (way, kind), one in emulated(found).items():
        if kind == "flight_counter":
            yield (
                f"{kind}, {WAYS[way]}: {found[way, kind].reads:.4g} blocks of 85/K ms take "
                f"{_off(one)}. Other work of a server is not divided by K."
            )
    if rejected := sum(cell.rejected for cell in found.values()):
        made = rejected + sum(len(cell.turns) for cell in found.values())
        yield f"{rejected} of {made} runs were rejected by rule and count nowhere."


def _off(one: Predicted) -> str:
    off = 100 * (one.share.estimate - 1)
    return f"{told_s(one.mean_s)}; measured {off:+.1f} % ({_VERDICTS[one.verdict]})"


def _way_finding(found: Cells, way: str) -> str:
    cell = known(found, way, "flight_counter")
    if cell is None:
        return f"{capital(WAYS[way])}: no run of flight_counter counts."
    mean_s, published = cell.mean_s, SERVICE_TIMES["flight_counter"]
    factor, unit = (1, "s") if mean_s.estimate >= 1 else (1000, "ms")
    scaled = f"; times K that is {mean_s.estimate * cell.scale:.4g} s"
    same = f" Published: {published.mean_s:.4g} s, cv {published.variation:.3f}."
    return (
        f"{capital(WAYS[way])} answers flight_counter over {cell.blocks} blocks in "
        f"{factor * mean_s.estimate:.3g} ± {factor * mean_s.half_width:.2g} {unit}, cv "
        f"{cell.service.variation:.3g}, L = {1 / mean_s.estimate:.3g} per second"
        f"{scaled if cell.scale != 1 else ''}.{same if way == STUDY else ''}"
    )


def _faster(found: Cells, way: str) -> Iterator[str]:
    ratios = {kind: times_faster(found, way, kind) for kind in KINDS}
    told = [f"{kind} {estimated(of).plus_minus()}" for kind, of in ratios.items() if of]
    if told:
        yield (
            f"{capital(WAYS[way])}, how many times as fast as the study's storage on the same "
            f"machine: {', '.join(told)}."
        )


def _alike(found: Cells, way: str) -> Iterator[str]:
    """Tell whether the three questions about flights take the same time, as in the study."""
    means = {kind: cell.mean_s.estimate for kind in QUESTIONS if (cell := known(found, way, kind))}
    if len(means) == len(QUESTIONS):
        slowest, quickest = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        of_study = [SERVICE_TIMES[kind].mean_s for kind in QUESTIONS]
        yield (
            f"The three questions about flights, {WAYS[way]}: from {quickest} to {slowest} the "
            f"mean grows by {100 * (means[slowest] / means[quickest] - 1):.0f} % (in the study by "
            f"{100 * (max(of_study) / min(of_study) - 1):.0f} %)."
        )


# --- tables and figures ------------------------------------------------------------------------

_READS_TOLD = (
    "Numbers of blocks that one request reads from files, as counted by the servers. The study's "
    "get_block and get_transaction read 19 neighbouring blocks if the block is in no cache."
)


def _told(found: Cells) -> Iterator[str]:
    cell = next(iter(found.values()))
    yield (
        "One customer has a new connection for each request. Intervals are 95 % intervals of "
        "the mean over turns through all requests and ways (over batches if there is one "
        "turn); the variance is that of all requests. Each kind of question about flights is "
        "one fixed question, as in the study; blocks and transactions are drawn at random."
    )
    if cell.blocks != BLOCKS:
        yield (
            f"The chain here has {cell.blocks} blocks, the study's had {BLOCKS}: a scan is shorter "
            "by that, and cannot be compared with the published figures."
        )
    if cell.scale != 1:
        yield (
            "Our scan has full blocks, and its work after reading is real. The study's storage has "
            "nearly empty ones."
        )


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


def _figure(found: Cells) -> Figure:
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
    told = (
        "Mean service time of each request, on a logarithmic axis; vertical strokes are 95 % "
        "intervals. The published times are from another machine, a Raspberry Pi with a hard disk."
    )
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
