"""Geometry of curves over a number: a rate, a count. They are drawn as line charts. Pure.

The horizontal axis begins at 0. A curve that rises above the plot is cut at its top.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from frontend.charts.plots import (
    Axis,
    Bar,
    Line,
    Lines,
    Point,
    Tick,
    axis,
    nice_step,
    path,
    ticks,
)
from frontend.lab.quantities import significant

STUDY_CURVE = 2  # the number of the study's curve, in every chart that compares
MOST_X_TICKS = 10
MOST_MARKED = 40  # up to so many points of a curve have a mark each


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve. name: for the key. number: from 1, for colour, dashes and mark. points: (x, y) by x.

    is_marked: whether points have marks, if there are not too many. marked: further ones with one.
    """

    name: str
    number: int
    points: Sequence[Point]
    is_marked: bool = False
    marked: Sequence[Point] = ()

    @property
    def has_marks(self) -> bool:
        """Whether any point has a mark, so that the key shows it, too."""
        return self.is_marked or bool(self.marked)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. lines: for the macro `lines`. curves: for the key. unit: of the vertical axis."""

    lines: Lines
    curves: tuple[Curve, ...]
    unit: str


def chart(
    curves: Sequence[Curve],
    right: float,
    top: float,
    unit: str,
    *,
    is_counted: bool = False,
    texts: Sequence[str] = (),
) -> Chart:
    """Return curves over 0 to `right`, and up to `top` or a little more.

    is_counted: x is a whole number. texts: for x = 1, 2, …, in words.
    """
    upright = axis([top])
    slots = tuple(_slot(at, right, text) for at, text in enumerate(texts, start=1))
    drawn = tuple(line for curve in curves for line in _line(curve, right, upright))
    lines = Lines(upright, x_ticks(right, is_counted=is_counted), drawn, slots)
    return Chart(lines, tuple(curves), unit)


def x_ticks(right: float, *, is_counted: bool) -> tuple[Tick, ...]:
    step = nice_step(right, MOST_X_TICKS)
    if is_counted:
        step = max(1.0, step)
    steps = range(int(right / step * (1 + 1e-9)) + 1)
    return ticks([(100 * at * step / right, _label(at * step)) for at in steps])


def _label(value: float) -> str:
    text = significant(float(f"{value:.6g}"))
    return text.rstrip("0").rstrip(".") if "." in text and "·" not in text else text


def _slot(at: int, right: float, text: str) -> Bar:
    left, end = max(0.0, at - 0.5), min(right, at + 0.5)
    return Bar(100 * left / right, 0, 100 * (end - left) / right, 100, text)


def _line(curve: Curve, right: float, upright: Axis) -> list[Line]:
    def placed(points: Sequence[Point]) -> tuple[Point, ...]:
        return tuple((100 * x / right, upright.place(y)) for x, y in points)

    inside = placed(below(curve.points, upright.high))
    if not inside:
        return []
    joined = inside if curve.is_marked and len(inside) <= MOST_MARKED else ()
    marked = placed([point for point in curve.marked if point[1] <= upright.high])
    alone = (*marked, *(inside if len(inside) == 1 else ()))
    return [Line(curve.number, path([inside]), joined, alone)]


def below(points: Sequence[Point], top: float) -> list[Point]:
    """Return the points of a curve up to the first one above `top`, which is included."""
    if not points or points[0][1] > top:
        return []
    inside = [points[0]]
    for (x, y), (next_x, next_y) in pairwise(points):
        if next_y > top:
            share = (top - y) / (next_y - y)
            return [*inside, (x + share * (next_x - x), top)]
        inside.append((next_x, next_y))
    return inside
