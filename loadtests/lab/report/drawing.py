"""Draws figures as SVG, with matplotlib and in one visual language: lines, steps, points and bars.

Colours are written as CSS variables of the page, so that a figure follows its light or dark theme;
text stays text. The same figure gives the same bytes. A series looks like its source: the study's
is orange and dotted, ours blue with points, a model's green and dashed.

Source: matplotlib's svg backend, rcParams `svg.hashsalt` and `svg.fonttype`.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from typing import Any, Literal, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter

from loadtests.lab.content import Figure, Table

WIDTH_IN, HEIGHT_IN = 7.0, 3.9  # at 72 dots per inch; the page scales figures
SHORT_LOGARITHMS = 60  # an axis from 1 to this has few powers of ten
ROW_IN, FRAME_IN = 0.2, 1.2  # heights of a horizontal bar and of everything around the bars

Source = Literal["study", "ours", "model", "second", "third", "fourth", "bound"]
Shape = Literal["line", "points", "steps", "rows", "curve"]
IN_TURN: Sequence[Source] = ("ours", "second", "third", "fourth", "model", "study")


# Colour, the page's variable for it, stroke and mark; page.css defines what replaces the colours.
_LOOKS: Mapping[Source, tuple[str, str, str, str]] = {
    "ours": ("#a10001", "--data-1", "-", "o"),
    "study": ("#a10002", "--data-2", ":", "s"),
    "model": ("#a10003", "--data-3", "--", ""),
    "second": ("#a10004", "--data-4", "-.", "^"),
    "third": ("#a10005", "--data-6", "-", "D"),
    "bound": ("#a10006", "--data-5", ":", ""),
    "fourth": ("#a10009", "--data-7", "-", "v"),
}
_INK, _LINE = "#a10007", "#a10008"
_COLOURS = {source: colour for source, (colour, *_) in _LOOKS.items()}
_VARIABLES = {_INK: "--ink", _LINE: "--line"} | {look[0]: look[1] for look in _LOOKS.values()}

_IDS = re.compile(r'(?<=\bid=")|(?<=href="#)|(?<=url\(#)')
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": _LINE,
    "legend.frameon": False,
}
_STYLE |= dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), _INK)
_STYLE |= dict.fromkeys(("xtick.color", "ytick.color"), _INK)


@dataclass(frozen=True, slots=True)
class Series:
    """Holds values of a source. low, high: an interval around each y; None where there is none.

    A y of None leaves a gap. `rows` are horizontal bars: the xs are words, from the top, and the ys
    are drawn along the x axis. A `curve` shows what a model says about points of the same source,
    as dashes in their colour. A series without a name is not in the legend.
    """

    name: str
    source: Source
    xs: Sequence[float] | Sequence[str]
    ys: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    shape: Shape = "line"


@dataclass(frozen=True, slots=True)
class Axis:
    """Describes an axis. label: quantity and unit. limits, ticks: if not given, values decide."""

    label: str
    is_logarithmic: bool = False
    limits: tuple[float, float | None] | None = None
    ticks: Sequence[float] = ()


NO_TABLE = Table("", (), ())


def figure(
    title: str, caption: str, x: Axis, y: Axis, series: Sequence[Series], table: Table = NO_TABLE
) -> Figure:
    """Return a figure of these series, with its content in words and its numbers."""
    return Figure(title, drawn(x, y, series), caption, table)


def drawn(x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Return an SVG element that shows these series, for use inside HTML."""
    words = repr((x, y, series))
    with mpl.rc_context(cast("Any", _STYLE | {"svg.hashsalt": words})):
        rows = [item for item in series if item.shape == "rows"]
        drawn_rows = sum(y is not None for item in rows for y in item.ys)
        height_in = FRAME_IN + ROW_IN * (drawn_rows + len(rows[0].xs)) if rows else HEIGHT_IN
        size_in = WIDTH_IN, max(HEIGHT_IN / 2, height_in)
        canvas = Canvas(figsize=size_in, layout="constrained")
        axes = canvas.subplots()
        if rows:
            _rows(axes, rows)
        for item in series:
            if item.shape != "rows":
                _curve(axes, item)
        _frame(axes, x, y, series)
        if sum(bool(item.name) for item in series) > 1:
            _legend(canvas)
        written = io.StringIO()
        canvas.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    return _inline(written.getvalue(), sha256(words.encode()).hexdigest()[:8])


def _legend(canvas: Canvas) -> None:
    """Add a legend above the axes, in as many columns as there is room for."""
    for columns in (3, 2, 1):
        legend = canvas.legend(loc="outside upper left", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= canvas.bbox.width:
            return
        legend.remove()


_SHAPES: Mapping[Shape, dict[str, Any]] = {  # what a shape has otherwise than its source
    "points": {"linestyle": ""},
    "steps": {"marker": "", "drawstyle": "steps-post"},
    "curve": {"marker": "", "linestyle": "--", "linewidth": 1.1},
}


def _curve(axes: Axes, series: Series) -> None:
    colour, _, stroke, mark = _LOOKS[series.source]
    look = {
        "color": colour,
        "linestyle": stroke,
        "marker": mark or ("x" if series.shape == "points" else ""),
        "linewidth": 1.4,
        **_SHAPES.get(series.shape, {}),
    }
    ys = [float("nan") if value is None else value for value in series.ys]
    axes.plot(cast("Any", series.xs), ys, markersize=4, label=_label(series), **look)
    for position, low, high in _intervals(series):
        axes.vlines(series.xs[position], low, high, color=colour, linewidth=1.2, alpha=0.7)


def _rows(axes: Axes, rows: Sequence[Series]) -> None:
    """Draw horizontal bars; those of one word are next to each other."""
    at, marks = 0, []
    places: list[dict[int, int]] = [{} for _ in rows]  # of each series: position -> y
    for position in range(len(rows[0].xs)):
        there = [own for own, row in zip(places, rows, strict=True) if row.ys[position] is not None]
        for y, own in enumerate(there, at):
            own[position] = y
        marks.append(at + (len(there) - 1) / 2)
        at += len(there) + 1
    for own, row in zip(places, rows, strict=True):
        widths = [row.ys[position] for position in own]
        look: Any = {"color": _COLOURS[row.source], "label": _label(row)}
        axes.barh([*own.values()], cast("Any", widths), 0.86, **look)
        for position, low, high in _intervals(row):
            if position in own:
                axes.hlines(own[position], low, high, color=_INK, linewidth=1.0, alpha=0.6)
    axes.set_yticks(marks, [str(word) for word in rows[0].xs])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _label(series: Series) -> str:
    return series.name or "_"  # matplotlib leaves out names that begin with _


def _intervals(series: Series) -> Iterator[tuple[int, float, float]]:
    """Yield each position that has both ends of an interval, and these ends."""
    for position, (low, high) in enumerate(zip(series.low, series.high, strict=False)):
        if low is not None and high is not None:
            yield position, low, high


def _frame(axes: Axes, x: Axis, y: Axis, series: Sequence[Series]) -> None:
    along_x = [item.ys if item.shape == "rows" else item.xs for item in series]
    along_y = [item.ys for item in series]
    for given, axis, set_scale, set_limits, along in (
        (x, axes.xaxis, axes.set_xscale, axes.set_xlim, along_x),
        (y, axes.yaxis, axes.set_yscale, axes.set_ylim, along_y),
    ):
        axis.set_label_text(given.label)
        values = chain.from_iterable(along)
        # without positive values there are no logarithms: every run of an experiment was rejected
        if given.is_logarithmic and any(isinstance(v, int | float) and v > 0 for v in values):
            set_scale("log")
        if given.limits:
            set_limits(*given.limits)
        if given.is_logarithmic:
            _number_logarithms(axis)
        if given.ticks:
            axis.set_ticks(given.ticks, [f"{tick:,g}" for tick in given.ticks])
            axis.set_ticks([], minor=True)
    axes.set_axisbelow(True)


def _number_logarithms(axis: Any) -> None:
    """Label powers of ten as plain numbers, and 2 and 5 times them if the axis is short."""
    axis.set_major_formatter(lambda value, _: f"{value:,g}")
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high < SHORT_LOGARITHMS * low:
        axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
        axis.set_minor_formatter(lambda value, _: f"{value:,g}")
    else:
        axis.set_minor_formatter(NullFormatter())


def _inline(document: str, name: str) -> str:
    """Return the element of an SVG document, with ids that are unique among a page's figures."""
    element = document[document.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = _IDS.sub(f"f{name}-", element)
    for colour, variable in _VARIABLES.items():
        element = element.replace(colour, f"var({variable})")
    return element.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
