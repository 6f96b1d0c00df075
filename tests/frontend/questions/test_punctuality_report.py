"""The report card: its figures are those of a plain loop, its calendar has every day once."""

from datetime import date, timedelta
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.charts.months import MOST_DAYS
from frontend.coverage import NOTHING_KNOWN
from frontend.questions.punctuality_report import punctuality_reports

FIRST = date(2013, 1, 1)


def leg(number: int, day: int, **changed: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "TRANSACTION_ID": number,
        "FL_DATE": (FIRST + timedelta(days=day)).isoformat(),
        "OP_CARRIER_AIRLINE_ID": 19977,
        "ORIGIN": "EWR",
        "DEST": "IAH",
        "DEP_TIME": "0515",
        "DEP_DELAY": 0,
        "ARR_DELAY": 0,
        "CANCELLED": 0,
    }
    return known | changed


legs = st.lists(
    st.tuples(
        st.integers(0, 400), st.sampled_from((19977, 19790)), st.none() | st.integers(-60, 300)
    ),
    min_size=1,
    max_size=30,
)


@given(legs)
def test_the_figures_are_those_of_a_plain_loop(some: list[tuple[int, int, int | None]]) -> None:
    flown = [
        leg(n, day, OP_CARRIER_AIRLINE_ID=carrier, ARR_DELAY=delay, CANCELLED=int(delay is None))
        for n, (day, carrier, delay) in enumerate(some)
    ]
    found = punctuality_reports(flown, NOTHING_KNOWN)
    assert sum(len(card.legs) for card in found) == len(flown)
    assert [len(card.legs) for card in found] == sorted(
        (len(card.legs) for card in found), reverse=True
    )
    for card in found:
        own = [(day, delay) for day, carrier, delay in some if carrier == card.carrier.number]
        delays = [delay for _, delay in own if delay is not None]
        assert len(card.days) == len({day for day, _ in own})
        assert card.days_flown == len({day for day, delay in own if delay is not None})
        figures, spread = card.figures, card.figures["distribution"]
        assert figures["cancelled"] == len(own) - len(delays)
        on_time = sum(delay < 15 for delay in delays)
        assert figures["on_time_share_of_scheduled"] == pytest.approx(on_time / len(own))
        if not delays:
            assert figures["average_delay"] is figures["on_time_share_of_arrived"] is None
            assert (*spread.values(), card.worst) == (None,) * 3
            continue
        assert spread["median"] == median(delays)
        assert spread["p90"] == min(
            d for d in delays if sum(e <= d for e in delays) * 10 >= 9 * len(delays)
        )
        assert figures["on_time_share_of_arrived"] == sum(delay < 15 for delay in delays) / len(
            delays
        )
        assert card.worst is not None
        assert card.worst["ARR_DELAY"] == max(delays)


@given(legs)
def test_the_calendar_has_every_day_in_between(some: list[tuple[int, int, int | None]]) -> None:
    (card, *_) = punctuality_reports(
        [leg(n, day) for n, (day, _, _) in enumerate(some)], NOTHING_KNOWN
    )
    cells = [cell for month in card.calendar() for week in month.weeks for cell in week if cell]
    assert {str(day): legs for day, legs in cells if legs} == card.days
    days = [day for day, _ in cells]
    assert days == [days[0] + timedelta(step) for step in range(len(days))]
    assert all(len(week) == 7 for month in card.calendar() for week in month.weeks)


def test_a_long_calendar_is_of_the_last_days() -> None:
    (card,) = punctuality_reports([leg(0, 0), leg(1, 3000)], NOTHING_KNOWN)
    months = list(card.calendar())
    assert MOST_DAYS / 31 < len(months) < MOST_DAYS / 28
    assert [cell for week in months[-1].weeks for cell in week if cell and cell[1]]


@pytest.mark.parametrize(
    ("changed", "time"),
    [
        ({"DEP_TIME": "0010", "DEP_DELAY": 25}, "23:45"),
        ({"DEP_TIME": "2355", "DEP_DELAY": -10}, "00:05"),
        ({"DEP_TIME": None, "DEP_DELAY": None}, ""),
    ],
)
def test_a_scheduled_time_across_midnight(changed: dict[str, Any], time: str) -> None:
    (card,) = punctuality_reports([leg(0, 0, **changed)], NOTHING_KNOWN)
    (schedule,) = card.schedules
    assert schedule.time == time


def test_schedules_are_told_with_their_first_and_last_days() -> None:
    flown = [leg(0, 3), leg(1, 5), leg(2, 4, DEP_TIME="0700"), leg(3, 1, DEST="BOS")]
    (card,) = punctuality_reports(flown, NOTHING_KNOWN)
    told = [
        (one.dest, one.time, one.flights, one.first[-2:], one.last[-2:]) for one in card.schedules
    ]
    assert told == [
        ("BOS", "05:15", 1, "02", "02"),
        ("IAH", "05:15", 2, "04", "06"),
        ("IAH", "07:00", 1, "05", "05"),
    ]
