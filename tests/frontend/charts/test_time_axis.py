"""The time axis: days, months or years, clipped to what the ledger has."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.charts.time_axis import MOST_SLOTS, Slot, TimeAxis, covered, in_days, time_axis
from frontend.coverage import Coverage

DAYS = st.dates(date(1900, 1, 1), date(2199, 12, 31))


@given(DAYS, DAYS)
def test_slots_are_adjacent_and_hold_each_day_once(start: date, end: date) -> None:
    first, last = sorted((start, end))
    time = time_axis(first, last)
    assert len(time.slots) <= MOST_SLOTS
    assert (time.slots[0].first, time.slots[-1].last) == (first, last)
    for before, after in zip(time.slots, time.slots[1:], strict=False):
        assert after.first == before.last + timedelta(days=1)
    assert len(set(time.names)) == len(time.slots)


@given(DAYS, DAYS, st.data())
def test_a_day_is_in_the_slot_that_holds_it(start: date, end: date, data: st.DataObject) -> None:
    first, last = sorted((start, end))
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


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ("2013-01-01", "2014-12-31", ()),
        ("2013-01-01", "2014-06-14", ("June 2014 until the 14th",)),
        ("2013-01-02", "2014-06-30", ("January 2013 from the 2nd",)),
        ("2012-12-31", "2014-03-01", ("December 2012 from the 31st", "March 2014 until the 1st")),
        ("1900-01-01", "2013-06-14", ("2013 until 14 June",)),
        ("1900-12-30", "2013-12-31", ("1900 from 30 December",)),
        ("2013-01-15", "2013-06-14", ()),
    ],
)
def test_a_cut_month_or_year_names_its_days(first: str, last: str, names: tuple[str, ...]) -> None:
    time = time_axis(date.fromisoformat(first), date.fromisoformat(last))
    assert tuple(time.names[place] for place in time.incomplete) == names
    whole = set(range(len(time.slots))) - set(time.incomplete)
    assert not any(
        " from " in time.names[place] or " until " in time.names[place] for place in whole
    )


@pytest.mark.parametrize(
    ("last", "name"),
    [(23, "June 2013 from the 3rd until the 23rd"), (3, "June 2013 on the 3rd")],
)
def test_one_month_may_be_cut_at_both_ends(last: int, name: str) -> None:
    time = TimeAxis("month", (Slot(date(2013, 6, 3), date(2013, 6, last)),))
    assert time.names == (name,)
    assert time.incomplete == (0,)


def test_months_can_be_looked_at_in_days() -> None:
    time = time_axis(date(2013, 1, 15), date(2014, 6, 14))
    days = in_days(time)
    assert len(days.slots) == (date(2014, 6, 14) - date(2013, 1, 15)).days + 1
    assert days.place("2014-06-14") == len(days.slots) - 1
    assert days.incomplete == ()


def test_what_lies_before_and_after_all_flights_is_not_shown() -> None:
    known = Coverage(1, "2013-03-01", "2013-03-31", (), ())
    ends = covered("1900-01-01", "2199-12-31", known, ["2013-03-05", "2013-04-02"])
    assert ends == (date(2013, 3, 1), date(2013, 4, 2))
    elsewhere = covered("2012-01-01", "2012-01-03", known)
    assert elsewhere == (date(2012, 1, 1), date(2012, 1, 3))
