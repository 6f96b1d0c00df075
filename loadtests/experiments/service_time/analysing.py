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
from loadtests.experiments.service_time.plan import INDEX, KINDS, SCAN, STUDY
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
        Section("Service times", _told(found), [_table(found), _figure(found)]),
        Section("What a service time consists of", [_READS_TOLD], [_reads_table(found)]),
    ]
    return Report([*_findings(found)], sections, [*_metrics(found)])


# --- findings ----------------------------------------------------------------------------------


def _findings(found: Cells) -> Iterator[str]:
    for way in _ways(found):
        yield from _way_finding(found, way)
    for way in (SCAN, INDEX):
        yield from _faster(found, way)
    for way in _ways(found):
        yield from _alike(found, way)
    if prediction := refill(found):
        on_pi, published = refill_on_the_pi()
        yield (
            "get_transaction of the study's storage is a refill of its cache: "
            f"{prediction.cell.reads:.3g} blocks per request, at the time per block of a scan, "
            f"take {told_s(prediction.mean_s)}; measured {_off(prediction)}. From the published "
            f"figures it would be {on_pi:.3g} s, and {published:.3g} s were published."
        )
    for one in (one for one in emulated(found) if one.cell.kind == "flight_counter"):
        yield (
            f"{one.cell.kind}, {WAYS[one.cell.way]}: {one.cell.reads:.4g} blocks of 85/K ms take "
            f"{told_s(one.mean_s)}; measured {_off(one)}. Other work of a server is not divided "
            "by K."
        )
    if rejected := sum(cell.rejected for cell in found.values()):
        made = rejected + sum(len(cell.means_s) for cell in found.values())
        yield f"{rejected} of {made} runs were rejected by rule and count nowhere."


def _off(one: Predicted) -> str:
    return f"{100 * one.difference:+.1f} % ({_VERDICTS[one.verdict]})"


def _ways(found: Cells) -> list[str]:
    return [way for way in WAYS if any(key[0] == way for key in found)]


def _way_finding(found: Cells, way: str) -> Iterator[str]:
    cell = found.get((way, "flight_counter"))
    if cell is None or cell.mean_s is None:
        yield f"{capital(WAYS[way])}: no run of flight_counter counts."
        return
    scaled = f"; times K that is {cell.mean_s.estimate * cell.scale:.4g} s"
    published = SERVICE_TIMES["flight_counter"]
    same = f" Published: {published.mean_s:.4g} s, cv {published.variation:.3f}."
    yield (
        f"{capital(WAYS[way])} answers flight_counter over {cell.blocks} blocks in "
        f"{_with_interval(cell.mean_s)}, cv {_number(cell.cv)}, L = {_number(cell.capacity_per_s)} "
        f"per second{scaled if cell.scale != 1 else ''}.{same if way == STUDY else ''}"
    )


def _faster(found: Cells, way: str) -> Iterator[str]:
    told = []
    for kind in KINDS:
        ratio = times_faster(found, way, kind)
        if ratio is not None and found[way, kind].scale == 1:
            told.append(f"{kind} {estimated(ratio).plus_minus()}")
    if told:
        yield (
            f"{capital(WAYS[way])}, how many times as fast as the study's storage on the same "
            f"machine: {', '.join(told)}."
        )


def _alike(found: Cells, way: str) -> Iterator[str]:
    """Tell whether the three questions about flights take the same time, as in the study."""
    means = {
        kind: cell.mean_s.estimate
        for kind in QUESTIONS
        if (cell := found.get((way, kind))) and cell.mean_s
    }
    if len(means) < len(QUESTIONS):
        return
    slowest, quickest = max(means, key=lambda k: means[k]), min(means, key=lambda k: means[k])
    spread = means[slowest] / means[quickest] - 1
    of_study = [SERVICE_TIMES[kind].mean_s for kind in QUESTIONS]
    yield (
        f"The three questions about flights, {WAYS[way]}: from {quickest} to {slowest} the mean "
        f"grows by {100 * spread:.0f} % (in the study by "
        f"{100 * (max(of_study) / min(of_study) - 1):.0f} %)."
    )


# --- tables and figures ------------------------------------------------------------------------

_READS_TOLD = (
    "Numbers of blocks that one request reads from files, as counted by the servers. The study's "
    "get_block and get_transaction read 19 neighbouring blocks if the block is in no cache."
)


def _told(found: Cells) -> list[str]:
    cell = next(iter(found.values()))
    told = [
        (
            "One customer has a new connection for each request. Intervals are 95 % intervals of "
            "the mean over turns through all requests and ways (over batches if there is one "
            "turn); the variance is that of all requests. Each kind of question about flights is "
            "one fixed question, as in the study; blocks and transactions are drawn at random."
        )
    ]
    if cell.blocks != BLOCKS:
        told.append(
            f"The chain here has {cell.blocks} blocks, the study's had {BLOCKS}: a scan is shorter "
            "by that, and cannot be compared with the published figures."
        )
    if cell.scale != 1:
        told.append(
            "Our scan has full blocks, and its work after reading is real. The study's storage has "
            "nearly empty ones."
        )
    return told


def _table(found: Cells) -> Table:
    rows: list[Sequence[content.Cell]] = []
    for kind in KINDS:
        published = SERVICE_TIMES[kind]
        rows.append(
            (
                *(kind, PUBLISHED, None, published.mean_s, None, published.variance_s2),
                *(published.variation, 1 / published.mean_s, None, None),
            )
        )
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
    mean_s = cell.mean_s
    ratio = times_faster(found, way, kind) if way != STUDY and cell.scale == 1 else None
    return (
        kind,
        WAYS[way],
        cell.requests,
        mean_s.estimate if mean_s else None,
        mean_s.half_width if mean_s else None,
        cell.variance_s2,
        cell.cv,
        cell.capacity_per_s,
        mean_s.estimate * cell.scale if mean_s and cell.scale != 1 else None,
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
    if cell is None or cell.mean_s is None:
        return None
    return estimated(cell.mean_s.times(cell.scale))


def _reads_table(found: Cells) -> Table:
    waits = {(one.cell.way, one.cell.kind): one.mean_s for one in emulated(found)}
    rows: list[Sequence[content.Cell]] = []
    for (way, kind), cell in found.items():
        if not cell.reads or cell.mean_s is None:
            continue
        mean_ms = 1000 * cell.mean_s.estimate
        row = (kind, WAYS[way], cell.blocks, cell.reads, mean_ms, mean_ms / cell.reads)
        rows.append((*row, 1000 * waits[way, kind]) if waits else row)
    columns: Sequence[str] = (
        *("Request", "Answered by", "Blocks", "Blocks read", "E[S] / ms", "E[S] per read / ms"),
        *(("Blocks read × 85/K ms / ms",) if waits else ()),
    )
    note = "By the study's profile reading a block took 46 ms and checking 39 ms; 503 of 522 read."
    return Table("Blocks read", columns, rows, note)


# --- words -------------------------------------------------------------------------------------


def _metrics(found: Cells) -> Iterator[Metric]:
    for (way, kind), cell in found.items():
        if cell.mean_s is not None:
            yield estimated(cell.mean_s).metric(f"service_time[{way},{kind}]", "s")
        if cell.cv is not None:
            yield Metric(f"cv[{way},{kind}]", cell.cv)
    for one in emulated(found):  # without a unit, so that results at different K can be compared
        if one.cell.mean_s is not None:
            share = estimated(one.cell.mean_s.times(1 / one.mean_s))
            yield share.metric(f"service_time_ratio[{one.cell.way},{one.cell.kind}]", "")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _with_interval(of: Interval) -> str:
    if of.estimate >= 1:
        return f"{of.estimate:.3g} ± {of.half_width:.2g} s"
    return f"{1000 * of.estimate:.3g} ± {1000 * of.half_width:.2g} ms"
