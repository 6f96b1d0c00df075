"""Bars by weekday and by hour: their heights, their common scale, and which are left out."""

from datetime import date
from typing import Any

import pytest

from frontend.charts.time_axis import time_axis
from frontend.coverage import NOTHING_KNOWN, Carrier
from frontend.question import Question
from frontend.questions.delay_panels import Panels, panels
from frontend.questions.delays import report

Groups = dict[int, tuple[int, float | None]]  # key -> arrivals, mean delay
QUESTION = Question("average_delays", {})
DAYS = time_axis(date(2013, 1, 1), date(2013, 1, 31))


def answer(weekdays: Groups, hours: Groups) -> Any:
    return {
        "query": {},
        "by_day": [],
        "by_weekday": [{"DAY_OF_WEEK": key, **figures(*row)} for key, row in weekdays.items()],
        "by_hour": [{"hour": key, **figures(*row)} for key, row in hours.items()],
    }


def figures(arrived: int, mean: float | None) -> dict[str, Any]:
    return {
        "flights": arrived + 1,
        "arrived": arrived,
        "cancelled": 1,
        "no_arrival": 0,
        "average_delay": mean,
        "average_departure_delay": mean,
        "on_time_share_of_arrived": 0.5,
        "on_time_share_of_scheduled": 0.5,
    }


def made(*answers: Any) -> dict[str, Panels]:
    carriers = [Carrier(number, f"C{number}", None, 9) for number in range(len(answers))]
    return panels(answers, report(answers, carriers, DAYS).carriers, NOTHING_KNOWN, QUESTION)


def values(found: Panels) -> list[list[float]]:
    """The value that each bar of each chart reaches, read from its place."""
    span = found.upright.high - found.upright.low
    charts = [chart for _, _, chart in found.drawn]
    return [
        [
            found.upright.high
            - span * (bar.y if bar.y < chart.axis.zero - 1e-9 else bar.y + bar.height) / 100
            for bar in chart.bars
        ]
        for chart in charts
    ]


def test_every_bar_reaches_its_mean_on_one_scale_for_all() -> None:
    found = made(
        answer({1: (500, 12.0), 3: (500, -20.0)}, {6: (500, 5.0), 9: (500, 55.0)}),
        answer({2: (500, 30.0), 7: (500, 1.0)}, {7: (500, -3.0), 21: (500, 9.0)}),
    )
    assert values(found["weekday"]) == [pytest.approx([12, -20]), pytest.approx([30, 1])]
    assert values(found["hour"]) == [pytest.approx([5, 55]), pytest.approx([-3, 9])]
    assert found["weekday"].upright == found["hour"].upright
    assert found["weekday"].upright.low <= -20
    assert found["hour"].upright.high >= 55


def test_hours_have_places_from_the_first_to_the_last_of_all_carriers() -> None:
    found = made(answer({}, {6: (500, 5.0), 9: (500, 5.0)}), answer({}, {12: (9, 1.0)}))
    assert list(found) == ["hour"]
    assert list(found["hour"].keys) == [6, 7, 8, 9, 10, 11, 12]
    assert [name for name, _ in found["hour"].table_rows()] == [
        "06:00–06:59", "09:00–09:59", "12:00–12:59",
    ]  # fmt: skip


def test_a_handful_of_arrivals_is_in_the_table_and_neither_drawn_nor_on_the_scale() -> None:
    found = made(
        answer({1: (500, 5.0), 2: (10, 6.0), 3: (9, 900.0), 4: (0, None)}, {6: (500, 5.0)})
    )
    ((by, rank, chart),) = found["weekday"].drawn
    assert (by, rank) == ("weekday", 1)
    assert [bar.kind for bar in chart.bars] == ["s1", "s1 few"]
    assert found["weekday"].upright.high < 20
    means = [rows[0].mean for _, rows in found["weekday"].table_rows() if rows[0]]
    assert means == [5.0, 6.0, 900.0, None]


def test_a_chart_has_at_least_two_bars_to_compare() -> None:
    found = made(answer({1: (500, 5.0)}, {6: (500, 5.0), 7: (3, 80.0)}))
    assert found["weekday"].is_one
    assert not found["hour"].is_one
    assert found["weekday"].drawn == found["hour"].drawn == []
