"""Which records are of the same flight, and which of those contradict each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight, as_mapping
from backend.chain.identity import (
    MAY_BE_LEFT_OUT,
    Stored,
    differences,
    have_same_departure,
    leg_of,
    match,
    scheduled_departure,
)
from tests.flights import EXAMPLE

CANCELLED: dict[str, Value] = {
    **dict.fromkeys(("DEP_TIME", "DEP_DELAY", "ARR_TIME", "ARR_DELAY", "AIR_TIME")),
    "CANCELLED": 1,
}


def changed(**values: Value) -> Flight:
    """The example (scheduled at 19:55, left at 20:03) with some other values."""
    return tuple({**as_mapping(EXAMPLE), **values}[name] for name in FIELD_NAMES)


def stored(*flights: Flight) -> list[Stored]:
    return [Stored(number, 1, flight) for number, flight in enumerate(flights)]


def found(flight: Flight, *records: Flight, **options: Any) -> int | None:
    match_ = match(flight, stored(*records), **options)
    return None if match_ is None else match_.transaction_id


@pytest.mark.parametrize(
    ("values", "minutes"),
    [
        ({}, 19 * 60 + 55),
        ({"DEP_TIME": "0005", "DEP_DELAY": 10}, -5),
        ({"DEP_TIME": "2400", "DEP_DELAY": 10}, -10),
        ({"DEP_TIME": "0000", "DEP_DELAY": 10}, -10),
        ({"DEP_TIME": "2350", "DEP_DELAY": -5}, 23 * 60 + 55),
        ({"DEP_DELAY": None}, None),
        (CANCELLED, None),
    ],
)
def test_the_scheduled_departure_is_the_departure_less_its_delay(
    values: dict[str, Value], minutes: int | None
) -> None:
    assert scheduled_departure(changed(**values)) == minutes


@pytest.mark.parametrize(
    ("values", "is_same"),
    [
        ({}, True),
        ({"DEP_TIME": "2010", "DEP_DELAY": 15}, True),
        ({"DEP_TIME": "2010"}, False),
        ({"DEP_DELAY": None}, True),
        ({"DEP_TIME": "2004", "DEP_DELAY": None}, False),
        ({"DEP_TIME": None}, None),
        (CANCELLED, None),
    ],
)
def test_departures_are_compared_by_what_both_records_say(
    values: dict[str, Value], is_same: bool | None
) -> None:
    assert have_same_departure(EXAMPLE, changed(**values)) is is_same
    assert have_same_departure(changed(**values), EXAMPLE) is is_same


def test_frontiers_flight_of_the_night_before_is_another_flight() -> None:
    late = changed(DEP_TIME="0023", DEP_DELAY=28, ARR_TIME="0746", ARR_DELAY=21)
    on_time = changed(DEP_TIME="2350", DEP_DELAY=-5, ARR_TIME="0454", ARR_DELAY=-11)
    assert have_same_departure(late, on_time) is False


@pytest.mark.parametrize(
    ("values", "names"),
    [
        *(({name: None}, ()) for name in sorted(MAY_BE_LEFT_OUT)),
        ({"ARR_DELAY": None}, ("ARR_DELAY",)),
        ({"AIR_TIME": 117, "ARR_DELAY": 0}, ("ARR_DELAY", "AIR_TIME")),
        ({"ORIGIN_AIRPORT_ID": 1}, ("ORIGIN_AIRPORT_ID",)),
        ({"ORIGIN_STATE_NM": "Virginia"}, ("ORIGIN_STATE_NM",)),
        (CANCELLED, ("ARR_DELAY", "CANCELLED")),
    ],
)
def test_an_empty_field_contradicts_nothing_but_a_missing_arrival_does(
    values: dict[str, Value], names: tuple[str, ...]
) -> None:
    assert differences(EXAMPLE, changed(**values)) == names
    assert differences(changed(**values), EXAMPLE) == names


def test_midnight_has_two_spellings() -> None:
    midnight = changed(ARR_TIME="2400", DEP_TIME="0000")
    other = changed(ARR_TIME="0000", DEP_TIME="2400")
    assert differences(midnight, other) == ()
    assert differences(midnight, changed(ARR_TIME="0001", DEP_TIME="2400")) == ("ARR_TIME",)
    without_delay = [changed(DEP_TIME=time, DEP_DELAY=None) for time in ("0000", "2400")]
    assert have_same_departure(*without_delay) is True


def test_what_says_the_same_is_preferred_to_what_contradicts() -> None:
    other, same = changed(ARR_DELAY=99), changed(AIR_TIME=None)
    assert found(EXAMPLE, other, same) == 1
    assert found(EXAMPLE, other) == 0
    assert found(EXAMPLE, changed(**CANCELLED), other) == 1
    assert found(EXAMPLE, changed(DEP_TIME="0600")) is None
    assert found(EXAMPLE) is None


def test_a_flight_without_departure_is_any_of_its_leg_but_not_within_a_file() -> None:
    cancelled = changed(**CANCELLED)
    for one, other in ((cancelled, EXAMPLE), (EXAMPLE, cancelled)):
        assert found(one, other) == 0
        assert found(one, other, exactly=True) is None
    assert found(cancelled, EXAMPLE, cancelled) == 1
    assert found(cancelled, cancelled, exactly=True) == 0
    moved = changed(**CANCELLED | {"DEP_TIME": "2003", "DEP_DELAY": 8})
    assert found(moved, cancelled) == 0
    assert found(moved, EXAMPLE) == 0


LEG_VALUES = st.fixed_dictionaries({
    "DEP_TIME": st.sampled_from([None, "0000", "0010", "2350", "2400"]),
    "DEP_DELAY": st.sampled_from([None, -10, 0, 10]),
    "ARR_DELAY": st.sampled_from([None, 5, 6]),
    "AIR_TIME": st.sampled_from([None, 60, 61]),
})  # fmt: skip


def naive_minutes(values: dict[str, Any]) -> int | None:
    if values["DEP_TIME"] is None or values["DEP_DELAY"] is None:
        return None
    minutes = 60 * int(values["DEP_TIME"][:2]) + int(values["DEP_TIME"][2:])
    return (0 if minutes == 1440 else minutes) - int(values["DEP_DELAY"])


def naive_rank(one: dict[str, Any], other: dict[str, Any]) -> tuple[bool, bool] | None:
    """Whether it is uncertain that these are the same flight, and whether they contradict."""
    first, second = naive_minutes(one), naive_minutes(other)
    if first is None or second is None:
        first, second = (
            None if one_["DEP_TIME"] is None else int(one_["DEP_TIME"]) % 2400
            for one_ in (one, other)
        )
    if first is not None and second is not None and first != second:
        return None
    is_uncertain = (first is None) != (second is None)
    contradicts = one["ARR_DELAY"] != other["ARR_DELAY"]
    for name in ("DEP_TIME", "DEP_DELAY", "AIR_TIME"):
        pair = {one[name], other[name]}
        if name == "DEP_TIME":
            pair = {value and value.replace("2400", "0000") for value in pair}
        contradicts |= len(pair) == 2 and None not in pair
    return is_uncertain, contradicts


@given(LEG_VALUES, st.lists(LEG_VALUES, max_size=4))
def test_the_match_is_that_of_a_plain_loop(
    values: dict[str, Any], others: list[dict[str, Any]]
) -> None:
    ranks = {n: rank for n, o in enumerate(others) if (rank := naive_rank(values, o)) is not None}
    expected = min(ranks, key=lambda number: (ranks[number], number), default=None)
    records = [changed(**other) for other in others]
    assert found(changed(**values), *records) == expected
    if expected is not None:
        assert bool(differences(changed(**values), records[expected])) == ranks[expected][1]
    exact = [number for number, rank in ranks.items() if not rank[0]]
    assert (found(changed(**values), *records, exactly=True) is not None) == bool(exact)


def test_the_leg_is_day_carrier_number_and_route() -> None:
    assert leg_of(EXAMPLE) == ("2008-01-03", 19393, 335, "IAD", "TPA")
