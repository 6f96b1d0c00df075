"""Shows what `growth` measured: as a table, and as curves in one SVG that reads in light and dark.

Beyond the last size stands what a straight line through the largest sizes says of all flights that
BTS has published; where it would fall, their mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from loadtests.bench.measurements import machine_words
from loadtests.lab.report import drawing
from loadtests.lab.report.drawing import HEIGHT_IN, WIDTH_IN, Axis, Series
from loadtests.number_format import format_number

ALL = 220e6  # flights that BTS has published since October 1987
FITTED = 5  # sizes to which a straight line is fitted
COLUMNS = 2
PIXELS = 96  # an inch
STYLE = Path(drawing.__file__).with_name("page.css")


class Curve(NamedTuple):
    """Names a quantity that is measured at each size. panel: what it is drawn with."""

    name: str
    title: str
    panel: str


_NEW, _CACHED = "answers not cached, ms", "answers cached, ms"
_QUESTIONS = ("filter_transactions", "average_delays", "flight_counter")
ALL_YEARS = "flight_counter over all years"
_IMPORT, _TIMES, _MEMORY = "import of a flight, µs", "whole ledger, s", "memory, MB"
_SCRUB = "a pass of the scrub, hours"
_BYTES, _LOG, _START = "bytes a flight", "SQLite's log, MB", "from start to ready, s"
CURVES = (
    Curve("import_wall_us", "real time", _IMPORT),
    Curve("import_cpu_us", "processor time", _IMPORT),
    Curve("import_peak_mb", "an import at most", _MEMORY),
    Curve("memory_mb", "the service", _MEMORY),
    Curve("worker_mb", "its largest worker", _MEMORY),
    Curve("chain_bytes", "chain", _BYTES),
    Curve("index_bytes", "index", _BYTES),
    Curve("import_log_mb", "at most during an import", _LOG),
    Curve("ready_s", "in order", _START),
    Curve("recovery_s", "after kill -9 of an import", _START),
    *(Curve(f"new {question}", question, _NEW) for question in (*_QUESTIONS, ALL_YEARS)),
    *(Curve(f"cached {question}", question, _CACHED) for question in (*_QUESTIONS, ALL_YEARS)),
    Curve("verify_s", "verify", _TIMES),
    Curve("again_s", "verify --since last, unchanged", _TIMES),
    Curve("backup_s", "first backup", _TIMES),
    Curve("scrub_hours", "as fast as it may", _SCRUB),
)


def points(measured: Mapping[str, Any], name: str) -> tuple[list[float], list[float]]:
    """Return the sizes at which a quantity was measured, and what it was."""
    sizes = [size for size in measured["sizes"] if name in size]
    return [size["flights"] for size in sizes], [size[name] for size in sizes]


def extrapolated(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return what a straight line through the last points says of all flights."""
    xs, ys = xs[-FITTED:], ys[-FITTED:]
    slope, height = np.polyfit(xs, ys, 1)
    return float(height + slope * ALL if slope > 0 else fmean(ys))


def markdown(measured: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table of all quantities, and where they were measured."""
    flights = [size["flights"] for size in measured["sizes"]]
    heads = [f"{count / 1e6:.1f}" for count in flights]
    yield f"| Million flights | {' | '.join(heads)} | 220 |"
    yield f"|---|{'---|' * (len(heads) + 1)}"
    for curve in CURVES:
        xs, ys = points(measured, curve.name)
        values = dict(zip(xs, ys, strict=True))
        cells = [format_number(values[count]) if count in values else "" for count in flights]
        beyond = f"*{format_number(extrapolated(xs, ys))}*" if len(xs) > 2 else ""
        yield f"| {curve.panel}: {curve.title} | {' | '.join(cells)} | {beyond} |"
    machine = machine_words(measured["machine"])
    yield from ("", f"{measured['date']}, commit {measured['commit']}, {machine}.")


def svg(measured: Mapping[str, Any]) -> str:
    """Return an SVG document of small curves, a panel for each group of quantities."""
    panels: dict[str, list[Curve]] = {}
    for curve in CURVES:
        panels.setdefault(curve.panel, []).append(curve)
    width, height = PIXELS * WIDTH_IN, PIXELS * HEIGHT_IN
    parts = [
        _panel(measured, panel, curves).replace(
            "<svg ", f'<svg x="{at % COLUMNS * width:g}" y="{at // COLUMNS * height:g}" ', 1
        )
        for at, (panel, curves) in enumerate(panels.items())
    ]
    size = f"{COLUMNS * width:g} {-(-len(panels) // COLUMNS) * height:g}"
    style = f"<style>{STYLE.read_text('utf-8')}</style>"
    ground = '<rect width="100%" height="100%" fill="var(--surface)"/>'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">'
    return "\n".join([begin, style, ground, *parts, "</svg>", ""])


def _panel(measured: Mapping[str, Any], panel: str, curves: Sequence[Curve]) -> str:
    series = list[Series]()
    for curve, source in zip(curves, drawing.IN_TURN, strict=False):
        xs, ys = points(measured, curve.name)
        millions = [x / 1e6 for x in xs]
        series.append(Series(curve.title, source, millions, ys))
        if len(xs) > 2:
            beyond = [ys[-1], extrapolated(xs, ys)]
            series.append(Series("", source, [millions[-1], ALL / 1e6], beyond, shape="curve"))
    highest = max((y for curve in series for y in curve.ys if y is not None), default=0)
    grows = panel in {_TIMES, _SCRUB}
    y = Axis(panel, is_logarithmic=grows, limits=None if grows else (0, 1.1 * highest or 1))
    return drawing.drawn(Axis("million flights", is_logarithmic=True), y, series)
