"""Geometry of charts, by its properties."""

import math
import re
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.charts.plots import (
    LEAST_BAR,
    MOST_COARSE_TICKS,
    MOST_TICKS,
    axis,
    bars_in_time,
    histogram,
    line_in_time,
    nice_step,
    time_ticks,
    usual_axis,
)
from frontend.charts.time_axis import TimeAxis, time_axis
from tests.cases import each_of

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


def days(count: int) -> TimeAxis:
    return time_axis(date(2013, 1, 1), date(2013, 1, 1) + timedelta(days=count - 1))


# --- axes


@given(st.floats(1e-3, 1e9), st.integers(2, 10))
def test_a_step_is_the_least_nice_one_that_cuts_into_few_parts(span: float, most: int) -> None:
    step = nice_step(span, most)
    mantissa = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert round(mantissa, 6) in {1, 2, 5}
    assert span / step <= most * (1 + 1e-9)
    smaller = step * {1: 0.5, 2: 0.5, 5: 0.4}[round(mantissa)]
    assert span / smaller > most * (1 - 1e-9)


@given(st.lists(NUMBERS))
def test_all_values_and_zero_are_on_the_axis(values: list[float]) -> None:
    scale = axis(values)
    for value in [*values, 0]:
        assert -1e-6 <= scale.place(value) <= 100 + 1e-6
    places = [tick.at for tick in scale.ticks]
    assert 2 <= len(places) <= 8
    assert [places[0], places[-1]] == pytest.approx([100, 0])
    gaps = [before - after for before, after in pairwise(places)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps))
    assert len({tick.label for tick in scale.ticks}) == len(places)


@given(st.lists(st.integers(0, 10_000)))
def test_counts_have_whole_numbers_at_their_ticks(counts: list[int]) -> None:
    labels = [tick.label for tick in axis(counts, least_step=1).ticks]
    assert all(re.fullmatch(r"[\d,]+", label) for label in labels)


def test_labels_of_small_steps_have_the_digits_they_need() -> None:
    assert [tick.label for tick in axis([0.4, -0.1]).ticks] == [
        "−0.1", "0.0", "0.1", "0.2", "0.3", "0.4",
    ]  # fmt: skip


def test_one_huge_value_does_not_press_the_others_flat() -> None:
    many = [float(value) for value in range(-20, 80)]
    assert usual_axis([*many, 1272.0]).high < 400
    assert usual_axis([*many, 200.0]).high == 200
    assert usual_axis([5.0, 1272.0]).high >= 1272
    assert usual_axis([]).low == 0


@each_of("count", [1, 2, 14, 15, 31, 62, 98, 99, 181, 365, 400, 401, 1500, 40_000])
def test_ticks_of_time_are_few_and_in_order(count: int) -> None:
    time = days(count)
    ticks = time_ticks(time)
    assert 1 <= len(ticks) <= MOST_TICKS
    assert 1 <= sum(tick.is_coarse for tick in ticks) <= MOST_COARSE_TICKS
    places = [0, *(tick.at for tick in ticks), 100]
    gaps = [after - before for before, after in pairwise(places)]
    assert all(gap > 0 for gap in gaps)
    inner = gaps[1:-1]
    assert not inner or max(inner) < 1.2 * min(inner)


def test_a_tick_is_in_the_middle_of_its_day() -> None:
    (only,) = time_ticks(days(1))
    assert (only.at, only.label) == (50, "1 Jan")
    year = time_ticks(days(365))
    assert [tick.label for tick in year][:3] == ["2013", "Feb", "Mar"]
    assert year[1].at == pytest.approx(100 * 31.5 / 365)


# --- bars


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_a_bar_reaches_from_zero_up_to_its_value(counts: list[int]) -> None:
    chart = bars_in_time(days(len(counts)), counts, [""] * len(counts))
    for drawn, count in zip(chart.bars, counts, strict=True):
        assert drawn.y + drawn.height == pytest.approx(chart.axis.zero)
        assert abs(drawn.y - chart.axis.place(count)) <= LEAST_BAR
        assert drawn.height >= LEAST_BAR


def test_incomplete_months_are_shaded_from_top_to_bottom() -> None:
    time = time_axis(date(2013, 1, 1), date(2014, 6, 14))
    bars = bars_in_time(time, [3] * 18, [""] * 18)
    lines = line_in_time(time, {0: 1.0}, {}, [])
    for (shade,) in (bars.shaded, lines.shaded):
        assert (shade.y, shade.height, shade.text) == (0, 100, "June 2014 until the 14th")
        assert shade.x < bars.bars[-1].x
        assert shade.x + shade.width == pytest.approx(100)
    assert bars_in_time(days(31), [1] * 31, [""] * 31).shaded == ()


def test_days_without_flights_have_no_bar() -> None:
    chart = bars_in_time(days(4), [3, 0, 1, 0], ["a", "b", "c", "d"])
    assert [bar.text for bar in chart.bars] == ["a", "c"]
    first, third = chart.bars
    assert third.x - first.x == pytest.approx(50)
    assert first.height == pytest.approx(3 * third.height)


@pytest.mark.parametrize("count", [1, 31, 100, 101, 365])
def test_bars_stand_side_by_side_within_the_plot(count: int) -> None:
    chart = bars_in_time(days(count), [1] * count, [""] * count)
    assert chart.bars[0].x >= -1e-9
    assert chart.bars[-1].x + chart.bars[-1].width <= 100 + 1e-9
    for left, right in pairwise(chart.bars):
        assert left.x + left.width <= right.x + 1e-9
    rectangles = re.findall(r"M(\S+) (\S+)V([\d.]+)H([\d.]+)V([\d.]+)", chart.area)
    assert len(rectangles) == (count if count > 100 else 0)
    for bar, rectangle in zip(chart.bars, rectangles, strict=False):
        bottom = bar.y + bar.height
        sides = [bar.x, bottom, bar.y, bar.x + bar.width, bottom]
        assert list(map(float, rectangle)) == pytest.approx(sides, abs=0.01)


def test_a_histogram_has_its_bins_in_order_and_a_line_where_late_begins() -> None:
    chart = histogram(
        [(1, "0"), (3, "30+")], [10.0, 0.0, 40.0, 50.0], list("abcd"), list("wxyz"), 2
    )
    assert [(tick.at, tick.label) for tick in chart.ticks] == [(25, "0"), (75, "30+")]
    assert [(bar.text, bar.kind) for bar in chart.bars] == [("a", "w"), ("c", "y"), ("d", "z")]
    assert chart.divide == 50
    assert [tick.label for tick in chart.axis.ticks] == [f"{n} %" for n in range(0, 60, 10)]
    assert chart.bars[1].x < 75 < chart.bars[2].x


# --- lines


def test_a_line_is_broken_where_a_day_has_no_value() -> None:
    values = {0: 1.0, 1: 2.0, 3: -5.0, 5: 4.0, 6: 4.0}
    (line,) = line_in_time(days(7), values, {}, [""] * 7).lines
    assert line.path.count("M") == 2
    assert line.path.count("L") == 2
    assert [round(x, 2) for x, _ in line.alone] == [50.0]
    assert len(line.marks) == 4


def test_a_line_passes_through_the_places_of_its_values() -> None:
    chart = line_in_time(days(2), {0: -10.0, 1: 30.0}, {}, ["", ""])
    (line,) = chart.lines
    low, high = chart.axis.low, chart.axis.high
    assert [x for x, _ in line.marks] == [25, 75]
    assert line.beyond == ()
    assert [high - y * (high - low) / 100 for _, y in line.marks] == pytest.approx([-10, 30])


def test_a_smooth_line_is_drawn_before_dots_of_the_values() -> None:
    values = {day: float(day % 20) for day in range(60)}
    smooth = dict.fromkeys(range(3, 57), 9.0)
    chart = line_in_time(days(60), values, smooth, [])
    (line,) = chart.lines
    points = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", line.path)]
    assert len(points) == len(smooth)
    assert [y for _, y in points] == pytest.approx([chart.axis.place(9.0)] * len(points), abs=0.01)
    assert not line.marks
    assert len(re.findall(r"M[\d.]+ [\d.]+h0", line.dots)) == len(values)


def test_what_is_cut_off_is_named_and_drawn_at_the_edge() -> None:
    values = {day: float(day % 20) for day in range(200)} | {77: 1272.0}
    (line,) = line_in_time(days(200), values, {}, []).lines
    ((slot, x),) = line.beyond
    assert (slot, x) == (77, 100 * 77.5 / 200)
    heights = [float(y) for y in re.findall(r" (-?[\d.]+)", line.path)]
    assert min(heights) == 0
    assert max(heights) <= 100
    assert not line.marks
