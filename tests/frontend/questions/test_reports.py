"""What reports work out of answers: weekly means, busiest days, intervals, report cards."""

from calendar import monthrange
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import starmap
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.backend_client import Json
from frontend.charts.months import MOST_MONTHS
from frontend.coverage import NOTHING_KNOWN, Coverage, all_days
from frontend.filters import short_interval
from frontend.pages.average_delays import LEAST_DAYS_FOR_WEEKS, week_means
from frontend.pages.flight_counter import CountsReport
from frontend.question import Question
from frontend.questions.intervals import offered
from frontend.questions.punctuality_report import punctuality_reports
from tests.cases import each_of

CELLS = st.dictionaries(
    st.integers(0, 40),
    st.builds(
        lambda arrived, delay: {"arrived": arrived, "average_delay": delay if arrived else None},
        st.integers(0, 3),
        st.integers(-60, 600),
    ),
)


@given(CELLS, st.integers(LEAST_DAYS_FOR_WEEKS, 41))
def test_a_mean_is_of_three_days_before_to_three_after(cells: dict[int, Json], count: int) -> None:
    means = week_means(cells, count)
    for day in range(count):
        around = [cells[other] for other in range(day - 3, day + 4) if other in cells]
        arrived = sum(cell["arrived"] for cell in around)
        if 3 <= day < count - 3 and arrived:
            total = sum(cell["arrived"] * (cell["average_delay"] or 0) for cell in around)
            assert means[day] == pytest.approx(total / arrived)
        else:
            assert day not in means


def covering(first: str | None, last: str | None) -> Coverage:
    return Coverage(1, first, last, (), ())


@each_of(
    ("counts", "busiest"),
    [({1: 1, 3: 4, 4: 2}, ("Thu 3 Jan 2013", 4)), ({2: 3, 4: 3}, ("Wed 2 Jan 2013", 3))],
)
def test_the_busiest_day_is_the_first_of_several(
    counts: dict[int, int], busiest: tuple[str, int]
) -> None:
    ends = {"INITIAL_DATE": "2013-01-01", "FINAL_DATE": "2013-01-04"}
    by_day = [{"FL_DATE": f"2013-01-0{day}", "count": count} for day, count in counts.items()]
    answer = {"query": ends, "count": sum(counts.values()), "by_day": by_day, "by_carrier": []}
    known = covering(*ends.values())
    assert CountsReport(known, Question("flight_counter", {}), answer).busiest == busiest


def test_links_for_all_days_the_last_ones_and_each_month() -> None:
    intervals = offered(covering("2013-01-15", "2013-03-10"))
    assert intervals == [
        ("All days", "2013-01-15", "2013-03-10"),
        ("Last 7 days", "2013-03-04", "2013-03-10"),
        ("January 2013", "2013-01-15", "2013-01-31"),
        ("February 2013", "2013-02-01", "2013-02-28"),
        ("March 2013", "2013-03-01", "2013-03-10"),
    ]


def test_of_many_months_those_of_one_year_are_offered() -> None:
    known = covering("2008-01-01", "2013-12-31")
    for looked_at, year in ((None, "2013"), ("2010-05-06", "2010")):
        names = [name for name, *_ in offered(known, looked_at)]
        assert names[2:8] == ["2008", "2009", "2010", "2011", "2012", "2013"]
        assert names[8:10] == [f"January {year}", f"February {year}"]
        assert len(names) == 8 + 12


def test_months_and_years_without_flights_are_not_offered() -> None:
    has = ["2011-12", "2012-01", "2026-11"]
    known = replace(covering("2011-12-01", "2026-11-29"), months=lambda: has)
    names = ["December 2011", "January 2012", "November 2026"]
    assert [name for name, *_ in offered(known)][2:] == names
    many = [*(f"2008-{month:02}" for month in range(1, 13)), *has]
    known = replace(known, first_date="2008-01-01", months=lambda: many)
    names = ["2008", "2011", "2012", "2026", "November 2026"]
    assert [name for name, *_ in offered(known)][2:] == names


GAPS = ["2008-01", *(f"2013-{month:02}" for month in range(1, 13)), "2014-01"]


@each_of(
    ("has", "asked", "words"),
    [
        (GAPS, (), "January 2008 and 1 January 2013 to 2 January 2014"),
        (GAPS, ("2008-01-05", "2008-12-31"), "5 to 31 January 2008"),
        (GAPS, ("2012-01-01", "2013-12-31"), "2013"),
        (GAPS, ("2010-01-01", "2010-12-31"), ""),
        (GAPS, ("2015-01-01", "2015-12-31"), ""),
        (GAPS, ("2014-01-03", "2014-01-31"), ""),
        ([], ("2010-01-01", "2015-12-31"), "1 January 2010 to 2 January 2014"),
        (
            [f"{year}-01" for year in range(2008, 2015)],
            (),
            "7 periods from 1 January 2008 to 2 January 2014",
        ),
    ],
)
def test_months_without_flights_are_not_said_to_be_covered(
    has: list[str], asked: tuple[str, ...], words: str
) -> None:
    known = replace(covering("2008-01-01", "2014-01-02"), months=lambda: has)
    assert known.days(*asked) == words


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2013-07-04", "2013-07-04", "4 July 2013"),
        ("2013-07-01", "2013-07-31", "July 2013"),
        ("2013-07-01", "2013-08-02", "1 July to 2 August 2013"),
        ("2012-07-01", "2013-07-02", "1 July 2012 to 2 July 2013"),
        ("2013-01-01", "2013-03-31", "1 January to 31 March 2013"),
        ("2012-01-01", "2013-12-31", "2012 to 2013"),
    ],
)
def test_an_interval_in_words_repeats_nothing(first: str, last: str, words: str) -> None:
    assert short_interval(first, last) == words


def test_an_empty_ledger_offers_nothing() -> None:
    assert offered(covering(None, None)) == []
    assert all_days(covering(None, None)) == {}


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
    cards = punctuality_reports(flown, NOTHING_KNOWN)
    assert sum(len(card.legs) for card in cards) == len(flown)
    assert [len(card.legs) for card in cards] == sorted(
        (len(card.legs) for card in cards), reverse=True
    )
    for card in cards:
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
def test_the_calendar_has_all_days_of_the_months_with_flights(
    some: list[tuple[int, int, int | None]],
) -> None:
    (card, *_) = punctuality_reports(
        [leg(n, day) for n, (day, _, _) in enumerate(some)], NOTHING_KNOWN
    )
    cells = [cell for month in card.calendar() for week in month.weeks for cell in week if cell]
    assert {str(day): legs for day, legs in cells if legs} == card.days
    days = Counter(f"{day:%Y-%m}" for day, _ in cells)
    assert days == {name: monthrange(*map(int, name.split("-")))[1] for name in days}
    assert days.keys() == {day[:7] for day in card.days}
    assert all(len(week) == 7 for month in card.calendar() for week in month.weeks)


def test_a_long_calendar_is_of_the_last_months_with_flights() -> None:
    days = [0, *range(500, 500 + 31 * MOST_MONTHS, 28)]
    (card,) = punctuality_reports(list(starmap(leg, enumerate(days))), NOTHING_KNOWN)
    months = list(card.calendar())
    assert len(months) == MOST_MONTHS
    assert not any(month.is_after_gap for month in months)
    (card,) = punctuality_reports([leg(0, 0), leg(1, 3000)], NOTHING_KNOWN)
    assert [month.is_after_gap for month in card.calendar()] == [False, True]


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
    schedules = [
        (row.dest, row.time, row.flights, row.first[-2:], row.last[-2:]) for row in card.schedules
    ]
    assert schedules == [
        ("BOS", "05:15", 1, "02", "02"),
        ("IAH", "05:15", 2, "04", "06"),
        ("IAH", "07:00", 1, "05", "05"),
    ]
