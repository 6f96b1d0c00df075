"""Geometry of curves over a number, by its properties."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.lab.curves import MOST_MARKED, Curve, below, chart, x_ticks

RISING = [(0.0, 1.0), (1.0, 2.0), (2.0, 5.0), (3.0, 50.0), (4.0, 60.0)]


def places(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]


def test_a_curve_ends_where_it_leaves_the_plot() -> None:
    assert below(RISING, 3.5) == [*RISING[:2], (1.5, 3.5)]
    assert below(RISING, 14.0) == [*RISING[:3], (2.2, 14.0)]
    assert below(RISING, 100.0) == RISING
    assert below(RISING, 0.5) == []
    assert below([], 1.0) == []


def test_points_stand_where_their_numbers_are() -> None:
    plot = chart([Curve("one", 1, [(0.0, 0.0), (5.0, 5.0), (10.0, 10.0)])], 10.0, 10.0, "s")
    assert places(plot.lines.lines[0].path) == [(0, 100), (50, 50), (100, 0)]


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1e6)), min_size=1, max_size=60),
    st.floats(0.01, 1e6),
)
def test_no_curve_leaves_the_plot(points: list[tuple[float, float]], top: float) -> None:
    ordered = sorted({x: (x, y) for x, y in points}.values())
    curve = Curve("one", 1, ordered, is_marked=True, marked=ordered[:2])
    for line in chart([curve], 100.0, top, "s").lines.lines:
        for x, y in [*places(line.path), *line.marks, *line.alone]:
            assert -1e-6 <= x <= 100 + 1e-6
            assert -1e-6 <= y <= 100 + 1e-6


@given(st.floats(1e-6, 1e6), st.booleans())
def test_ticks_are_few_even_and_on_the_axis(right: float, is_counted: bool) -> None:
    ticks = x_ticks(right, is_counted=is_counted)
    assert ticks[0].at == 0
    assert ticks[-1].at <= 100 + 1e-6
    assert len(ticks) <= 11
    gaps = [after.at - before.at for before, after in pairwise(ticks)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps) if gaps else [])
    if is_counted:
        assert all(re.fullmatch(r"[\d,]+", tick.label) for tick in ticks)
    assert sum(tick.is_coarse for tick in ticks) <= 5


def test_ticks_keep_the_zeros_of_whole_numbers() -> None:
    assert [tick.label for tick in x_ticks(30, is_counted=True)] == [
        *("0", "5", "10", "15", "20", "25", "30")
    ]
    assert [tick.label for tick in x_ticks(0.02, is_counted=False)][:2] == ["0", "0.002"]


def test_few_points_are_marked_and_many_are_not() -> None:
    for count, is_marked in ((MOST_MARKED, True), (MOST_MARKED + 1, False)):
        points = [(float(x), 1.0) for x in range(count)]
        plot = chart([Curve("one", 1, points, is_marked=True)], 100.0, 1.0, "s")
        assert bool(plot.lines.lines[0].marks) is is_marked


def test_a_single_point_is_seen_by_its_mark() -> None:
    (line,) = chart([Curve("one", 1, [(1.0, 1.0)])], 1.0, 1.0, "s").lines.lines
    assert (line.path, len(line.alone)) == ("", 1)


def test_the_words_of_each_number_cover_the_axis() -> None:
    slots = chart([], 3.0, 1.0, "s", is_counted=True, texts=["1", "2", "3"]).lines.slots
    assert [slot.text for slot in slots] == ["1", "2", "3"]
    assert slots[-1].x + slots[-1].width == pytest.approx(100)
    for before, after in pairwise(slots):
        assert before.x + before.width == pytest.approx(after.x)
