"""Intervals of days: cut into slots, clipped to what the ledger has, offered as links."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.coverage import Coverage
from frontend.intervals import MOST_SLOTS, offered, shown, time_axis, whole
from frontend.words import short_interval

DAYS = st.dates(date(1900, 1, 1), date(2199, 12, 31))


def covering(first: str | None, last: str | None) -> Coverage:
    return Coverage(1, first, last, (), ())


@given(DAYS, DAYS)
def test_slots_are_adjacent_and_hold_each_day_once(one: date, other: date) -> None:
    first, last = sorted((one, other))
    time = time_axis(first, last)
    assert len(time.slots) <= MOST_SLOTS
    assert (time.slots[0].first, time.slots[-1].last) == (first, last)
    for before, after in zip(time.slots, time.slots[1:], strict=False):
        assert after.first == before.last + timedelta(days=1)
    assert len(set(time.names)) == len(time.slots)


@given(DAYS, DAYS, st.data())
def test_a_day_is_placed_in_the_slot_that_holds_it(
    one: date, other: date, data: st.DataObject
) -> None:
    first, last = sorted((one, other))
    time = time_axis(first, last)
    day = data.draw(st.dates(first, last))
    slot = time.slots[time.place(day.isoformat())]
    assert slot.first <= day <= slot.last


@pytest.mark.parametrize(
    ("last", "unit", "slots"),
    [
        (date(2013, 1, 1), "day", 1),
        (date(2013, 12, 31), "day", 365),
        (date(2014, 2, 4), "day", 400),
        (date(2014, 2, 5), "month", 14),
        (date(2199, 12, 31), "year", 187),
    ],
)
def test_a_long_interval_is_cut_into_larger_pieces(last: date, unit: str, slots: int) -> None:
    time = time_axis(date(2013, 1, 1), last)
    assert (time.unit, len(time.slots)) == (unit, slots)


def test_what_lies_before_and_after_all_flights_is_not_shown() -> None:
    known = covering("2013-03-01", "2013-03-31")
    time = shown("1900-01-01", "2199-12-31", known, ["2013-03-05", "2013-04-02"])
    assert (time.slots[0].first, time.slots[-1].last) == (date(2013, 3, 1), date(2013, 4, 2))
    elsewhere = shown("2012-01-01", "2012-01-03", known, [])
    assert len(elsewhere.slots) == 3


def test_links_for_all_days_the_last_ones_and_each_month() -> None:
    found = offered(covering("2013-01-15", "2013-03-10"))
    assert [(each.name, each.first, each.last) for each in found] == [
        ("All days", "2013-01-15", "2013-03-10"),
        ("Last 7 days", "2013-03-04", "2013-03-10"),
        ("January 2013", "2013-01-15", "2013-01-31"),
        ("February 2013", "2013-02-01", "2013-02-28"),
        ("March 2013", "2013-03-01", "2013-03-10"),
    ]


def test_of_many_months_those_of_one_year_are_offered() -> None:
    known = covering("2008-01-01", "2013-12-31")
    for looked_at, year in ((None, "2013"), ("2010-05-06", "2010")):
        found = [each.name for each in offered(known, looked_at)]
        assert found[2:8] == ["2008", "2009", "2010", "2011", "2012", "2013"]
        assert found[8:10] == [f"January {year}", f"February {year}"]
        assert len(found) == 8 + 12


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2013-07-04", "2013-07-04", "4 July 2013"),
        ("2013-07-01", "2013-07-31", "1 to 31 July 2013"),
        ("2013-07-01", "2013-08-02", "1 July to 2 August 2013"),
        ("2012-07-01", "2013-07-02", "1 July 2012 to 2 July 2013"),
    ],
)
def test_an_interval_in_words_says_once_what_both_days_have(
    first: str, last: str, words: str
) -> None:
    assert short_interval(first, last) == words


def test_an_empty_ledger_offers_nothing() -> None:
    assert offered(covering(None, None)) == []
    assert whole(covering(None, None)) == {}
