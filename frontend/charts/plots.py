"""Geometry of charts: turns numbers into places on a plot. Pure.

The unit of every place and length is percent of the plot, x from its left, y from its top. The
macros in `templates/macros/charts.html` draw it at any width, with text that keeps its size.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from frontend.charts.time_axis import TimeAxis
from frontend.filters import number

MOST_STEPS = 6  # of a vertical axis
MOST_TICKS = 14  # along the time axis of a wide chart
MOST_COARSE_TICKS = 5  # so many of these are kept on a narrow chart
LEAST_BAR = 0.6  # height of the bar of a small number beside large ones, so that it is seen
MOST_APART = 100  # up to so many bars have gaps between them
BAR_SHARE = 0.8  # a bar fills this share of its room
BIN_SHARE = 0.94  # bins of a histogram are adjacent
MOST_MARKED = 62  # up to so many points of a line have a mark each
USUAL_SHARE = 0.98  # the scale of a line chart is made for this share of the values
FAR = 4.0  # values beyond so many times the usual are cut off: they would press all others flat

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick of an axis. is_coarse: shown on a narrow chart, too."""

    at: float
    label: str
    is_coarse: bool = True


@dataclass(frozen=True, slots=True)
class Axis:
    """The vertical axis. low, high: the values at the bottom and at the top."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        return 100 * (self.high - value) / (self.high - self.low)

    @property
    def zero(self) -> float:
        """The y of 0, which is always on the plot."""
        return self.place(0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar. text: what it stands for, in words. kind: what it is drawn as."""

    x: float
    y: float
    width: float
    height: float
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart. divide: the x of a line from top to bottom, if there is one.

    area: all bars as one path, in a drawing of 100 by 100, if they are too thin to be drawn one by
    one, which would leave seams between them; else "". shaded: pieces of the time axis that are
    incomplete, in full height.
    """

    axis: Axis
    ticks: tuple[Tick, ...]
    bars: tuple[Bar, ...]
    divide: float | None = None
    area: str = ""
    shaded: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a line chart. number: from 1, for colour, dashes and marks.

    path, dots: as in SVG, in a drawing of 100 by 100; dots are the values behind a smooth line.
    marks: points with a mark, if there is room. alone: points without neighbours, which could not
    be seen without a mark. beyond: the slots whose values are cut off, and their x.
    """

    number: int
    path: str
    marks: tuple[Point, ...]
    alone: tuple[Point, ...]
    beyond: tuple[tuple[int, float], ...] = ()
    dots: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A line chart. slots: the pieces of the time axis in full height, with their words.

    shaded: as in `Bars`.
    """

    axis: Axis
    ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]
    slots: tuple[Bar, ...]
    shaded: tuple[Bar, ...] = ()


# --- axes ------------------------------------------------------------------------------------


def nice_step(span: float, most: int) -> float:
    """Return the least of …, 0.5, 1, 2, 5, 10, … that cuts `span` > 0 into at most `most` parts."""
    magnitude = 10.0 ** math.floor(math.log10(span / most))
    return next(
        factor * magnitude for factor in (1, 2, 5, 10, 20) if span / (factor * magnitude) <= most
    )


def axis(values: Iterable[float], least_step: float = 0, unit: str = "") -> Axis:
    """Return an axis for all `values` and 0, with about MOST_STEPS ticks at nice numbers."""
    low, high = 0.0, 0.0
    for value in values:
        low, high = min(low, value), max(high, value)
    if low == high:
        high = 1.0
    step = max(nice_step(high - low, MOST_STEPS), least_step)
    first, last = math.floor(low / step), math.ceil(high / step)
    plain = Axis(first * step, last * step, ())
    digits = max(0, -math.floor(math.log10(step)))
    ticks = tuple(
        Tick(plain.place(count * step), number(count * step, digits) + unit)
        for count in range(first, last + 1)
    )
    return replace(plain, ticks=ticks)


def usual_axis(values: Sequence[float]) -> Axis:
    """Return an axis for `values` and 0, without those that are far above all others."""
    ranked = sorted(values)
    usual = ranked[math.ceil(USUAL_SHARE * len(ranked)) - 1] if ranked else 0
    if usual > 0 and ranked[-1] > FAR * usual:
        return axis([ranked[0], FAR / 2 * usual])
    return axis(ranked)


_TIME_LABELS: Sequence[tuple[Callable[[date], bool], Callable[[date], str]]] = (
    (lambda day: True, lambda day: f"{day.day} {day:%b}"),
    (lambda day: day.weekday() == 0, lambda day: f"{day.day} {day:%b}"),
    (lambda day: day.day == 1, lambda day: f"{day:%Y}" if day.month == 1 else f"{day:%b}"),
    (lambda day: day.day == 1 and day.month % 3 == 1, lambda day: f"{day:%b %Y}"),
    *(
        (lambda day, n=years: day.timetuple().tm_yday == 1 and day.year % n == 0, "{:%Y}".format)
        for years in (1, 5, 10, 50)
    ),
)
"""(which days may have a tick, what the tick says), from many ticks to few."""
_FIRST_LABELS = {"day": 0, "month": 2, "year": 4}  # the first row above to try, by the axis's unit


def time_ticks(time: TimeAxis) -> tuple[Tick, ...]:
    """Return at most MOST_TICKS ticks, each in the middle of its slot."""
    width = 100 / len(time.slots)
    for is_marked, label in _TIME_LABELS[_FIRST_LABELS[time.unit] :]:  # noqa: B007  the one that fits is used below
        places = [place for place, slot in enumerate(time.slots) if is_marked(slot.first)]
        if len(places) <= MOST_TICKS:
            break
    return ticks([((place + 0.5) * width, label(time.slots[place].first)) for place in places])


def ticks(labels: Sequence[tuple[float, str]]) -> tuple[Tick, ...]:
    """Return a tick for each place and label; a narrow chart keeps MOST_COARSE_TICKS at most."""
    every = -(-len(labels) // MOST_COARSE_TICKS)
    return tuple(Tick(at, label, count % every == 0) for count, (at, label) in enumerate(labels))


# --- bars ------------------------------------------------------------------------------------


def _bars(
    upright: Axis, places: int, share: float, values: Iterable[tuple[int, float, str, str]]
) -> tuple[Bar, ...]:
    """Return bars from 0 up to values above it, which fill a share of their places.

    values: (place, value, text, kind).
    """
    pitch = 100 / places
    bars = []
    for place, value, text, kind in values:
        height = max(upright.zero - upright.place(value), LEAST_BAR)
        x = (place + (1 - share) / 2) * pitch
        bars.append(Bar(x, upright.zero - height, share * pitch, height, text, kind))
    return tuple(bars)


def bars_in_time(time: TimeAxis, counts: Sequence[int], texts: Sequence[str]) -> Bars:
    """Return a bar for each slot of `time`; none where nothing was counted."""
    upright = axis(counts, least_step=1)
    is_apart = len(time.slots) <= MOST_APART
    slots = enumerate(zip(counts, texts, strict=True))
    values = ((place, count, text, "") for place, (count, text) in slots if count)
    bars = _bars(upright, len(time.slots), BAR_SHARE if is_apart else 1, values)
    area = "" if is_apart else "".join(map(_rectangle, bars))
    return Bars(upright, time_ticks(time), bars, None, area, incomplete(time))


def incomplete(time: TimeAxis) -> tuple[Bar, ...]:
    """Return the months or years of `time` that are cut, in full height."""
    pitch = 100 / len(time.slots)
    return tuple(Bar(place * pitch, 0, pitch, 100, time.names[place]) for place in time.incomplete)


def _rectangle(bar: Bar) -> str:
    left, bottom = f"{bar.x:.2f}", f"{bar.y + bar.height:.2f}"
    return f"M{left} {bottom}V{bar.y:.2f}H{bar.x + bar.width:.2f}V{bottom}"


def histogram(
    edges: Sequence[tuple[int, str]],
    shares: Sequence[float],
    texts: Sequence[str],
    kinds: Sequence[str],
    divide: int | None = None,
) -> Bars:
    """Return a bar for each of the bins, which are equally wide and adjacent: its share in percent.

    edges: (number of the bin to the right, its label). divide: a line left of that bin.
    """
    upright, pitch = axis(shares, unit=" %"), 100 / len(shares)
    bins = enumerate(zip(shares, texts, kinds, strict=True))
    values = ((place, *bin_) for place, bin_ in bins if bin_[0])
    bars = _bars(upright, len(shares), BIN_SHARE, values)
    labels = [(place * pitch, label) for place, label in edges]
    return Bars(upright, ticks(labels), bars, None if divide is None else divide * pitch)


# --- lines -----------------------------------------------------------------------------------


def line_in_time(
    time: TimeAxis, values: Mapping[int, float], smooth: Mapping[int, float], texts: Iterable[str]
) -> Lines:
    """Return a line through values by slot; broken where a slot has no value.

    smooth: by slot, too; if there is any, the line is drawn through it and `values` are dots.
    texts: of each slot.
    """
    upright, pitch = usual_axis(list(values.values())), 100 / len(time.slots)
    points = _points(values, upright, pitch)
    runs = _runs(_points(smooth, upright, pitch) or points)
    joined = [point for run in runs if len(run) > 1 for point in run]
    line = Line(
        1,
        path(runs),
        tuple(joined) if len(joined) <= MOST_MARKED and not smooth else (),
        tuple(run[0] for run in runs if len(run) == 1),
        tuple((s, (s + 0.5) * pitch) for s, v in values.items() if v > upright.high),
        "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points.values()) if smooth else "",
    )
    slots = tuple(Bar(place * pitch, 0, pitch, 100, text) for place, text in enumerate(texts))
    return Lines(upright, time_ticks(time), (line,), slots, incomplete(time))


def _points(values: Mapping[int, float], upright: Axis, pitch: float) -> dict[int, Point]:
    """Return the places of values by slot; those above the scale are at its upper end."""
    return {s: ((s + 0.5) * pitch, max(0.0, upright.place(v))) for s, v in values.items()}


def _runs(points: Mapping[int, Point]) -> list[list[Point]]:
    """Return runs of points, each of points in adjacent slots."""
    runs: list[list[Point]] = []
    before = None
    for slot in sorted(points):
        if before is None or slot != before + 1:
            runs.append([])
        runs[-1].append(points[slot])
        before = slot
    return runs


def path(runs: Iterable[Sequence[Point]]) -> str:
    """Return the lines through each run of points, as the `d` of an SVG path."""
    return "".join(
        "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in run) for run in runs if len(run) > 1
    )
