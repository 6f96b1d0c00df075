"""The time axis: days, months or years, clipped to what the ledger has."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.charts.time_axis import MOST_SLOTS, shown, time_axis
from frontend.coverage import Coverage

DAYS = st.dates(date(1900, 1, 1), date(2199, 12, 31))


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
    known = Coverage(1, "2013-03-01", "2013-03-31", (), ())
    time = shown("1900-01-01", "2199-12-31", known, ["2013-03-05", "2013-04-02"])
    assert (time.slots[0].first, time.slots[-1].last) == (date(2013, 3, 1), date(2013, 4, 2))
    elsewhere = shown("2012-01-01", "2012-01-03", known, [])
    assert len(elsewhere.slots) == 3
