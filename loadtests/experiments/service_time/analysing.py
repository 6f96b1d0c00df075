"""Makes the report of service times from their tables."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.service_time.comparing import (
    Cell,
    Cells,
    Predicted,
    cells,
    emulated,
    refill,
    refill_on_the_pi,
    times_faster,
)
from loadtests.experiments.service_time.measuring import INDEX, KINDS, SCAN, STUDY
from loadtests.lab.published import BLOCKS, SERVICE_TIMES
from loadtests.lab.repeated import Estimate, measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report import content
from loadtests.lab.report.content import Figure, Metric, Report, Section, Table, capital, told_s
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.models.estimates import TOLERANCE, Interval, Verdict
from loadtests.questions import KINDS as QUESTIONS

WAYS = {
    STUDY: "the study's storage, here",
    SCAN: "our scan",
    INDEX: "our index",
}
PUBLISHED = "the study, on its Pi"
_SOURCES: dict[str, Source] = {STUDY: "second", SCAN: "ours", INDEX: "model"}
_VERDICTS = {
    Verdict.AGREES: f"agrees within {TOLERANCE * 100:g} %",
    Verdict.DISAGREES: f"off by more than {TOLERANCE * 100:g} %",
    Verdict.NOT_DECIDED: f"whether within {TOLERANCE * 100:g} % is not decided",
}


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
            f"{prediction.cell.reads:.3g} blocks per request, at the time per block of a scan, "
            f"take {_off(prediction)}. From the published "
            f"figures it would be {on_pi:.3g} s, and {published:.3g} s were published."
        )
    for (way, kind), one in emulated(found).items():
        if kind == "flight_counter":
            yield (
                f"{kind}, {WAYS[way]}: {one.cell.reads:.4g} blocks of 85/K ms take {_off(one)}. "
                "Other work of a server is not divided by K."
            )
    if rejected := sum(cell.rejected for cell in found.values()):
        made = rejected + sum(len(cell.turns) for cell in found.values())
        yield f"{rejected} of {made} runs were rejected by rule and count nowhere."


def _off(one: Predicted) -> str:
    off = 100 * (one.share.estimate - 1)
    return f"{told_s(one.mean_s)}; measured {off:+.1f} % ({_VERDICTS[one.verdict]})"


def _way_finding(found: Cells, way: str) -> str:
    cell = found.get((way, "flight_counter"))
    if cell is None or not cell.is_known:
        return f"{capital(WAYS[way])}: no run of flight_counter counts."
    mean_s, published = cell.mean_s, SERVICE_TIMES["flight_counter"]
    scaled = f"; times K that is {mean_s.estimate * cell.scale:.4g} s"
    same = f" Published: {published.mean_s:.4g} s, cv {published.variation:.3f}."
    return (
        f"{capital(WAYS[way])} answers flight_counter over {cell.blocks} blocks in "
        f"{_with_interval(mean_s)}, cv {cell.cv:.3g}, L = {1 / mean_s.estimate:.3g} "
        f"per second{scaled if cell.scale != 1 else ''}.{same if way == STUDY else ''}"
    )


def _with_interval(of: Interval) -> str:
    factor, unit = (1, "s") if of.estimate >= 1 else (1000, "ms")
    return f"{factor * of.estimate:.3g} ± {factor * of.half_width:.2g} {unit}"


def _faster(found: Cells, way: str) -> Iterator[str]:
    ratios = {
        kind: ratio
        for kind in KINDS
        if (ratio := times_faster(found, way, kind)) and found[way, kind].scale == 1
    }
    if ratios:
        told = [f"{kind} {estimated(ratio).plus_minus()}" for kind, ratio in ratios.items()]
        yield (
            f"{capital(WAYS[way])}, how many times as fast as the study's storage on the same "
            f"machine: {', '.join(told)}."
        )


def _alike(found: Cells, way: str) -> Iterator[str]:
    """Tell whether the three questions about flights take the same time, as in the study."""
    means = {
        kind: cell.mean_s.estimate
        for kind in QUESTIONS
        if (cell := found.get((way, kind))) and cell.is_known
    }
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
        of = SERVICE_TIMES[kind]
        theirs = (of.mean_s, None, of.variance_s2, of.variation, 1 / of.mean_s, None, None)
        rows.append((kind, PUBLISHED, None, *theirs))
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
    mean_s, is_scaled = cell.mean_s.estimate, cell.scale != 1
    ratio = None if way == STUDY or is_scaled else times_faster(found, way, kind)
    return (
        *first,
        *(mean_s, cell.mean_s.half_width, cell.variance_s2, cell.cv, 1 / mean_s),
        mean_s * cell.scale if is_scaled else None,
        estimated(ratio).plus_minus() if ratio else None,
    )


def _figure(found: Cells) -> Figure:
    """Bars on a logarithmic axis, because the ways differ by powers of ten."""
    names = [kind.replace("_", "\n", 1) for kind in KINDS]
    published = [SERVICE_TIMES[kind].mean_s for kind in KINDS]
    series = [Series(PUBLISHED, "study", names, published, shape="bars")]
    for way in _ways(found):
        means = [_scaled(found.get((way, kind))) for kind in KINDS]
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


def _scaled(cell: Cell | None) -> Estimate | None:
    """K times the mean service time."""
    return estimated(cell.mean_s.times(cell.scale)) if cell and cell.is_known else None


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
            yield Metric(f"cv[{way},{kind}]", cell.cv)
    for (way, kind), one in emulated(found).items():  # no unit: to compare results at different K
        yield estimated(one.share).metric(f"service_time_ratio[{way},{kind}]", "")
