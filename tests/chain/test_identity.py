"""Which records are of the same flight, and which of those contradict each other."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from backend.chain.fields import Value
from backend.chain.flight import Flight
from backend.chain.identity import (
    MAY_BE_LEFT_OUT,
    Stored,
    all_matches,
    differences,
    have_same_departure,
    leg_of,
    match,
)
from tests.cases import each_of
from tests.flights import EXAMPLE
from tests.same_flights import CANCELLED, flown, found_among, same_or_similar


def stored(*flights: Flight) -> list[Stored]:
    return [Stored(number, 1, flight) for number, flight in enumerate(flights)]


def match_id(flight: Flight, *records: Flight, **options: Any) -> int | None:
    match_ = match(flight, stored(*records), **options)
    return None if match_ is None else match_.transaction_id


@each_of(
    ("values", "names"),
    [
        *(({name: None}, ()) for name in sorted(MAY_BE_LEFT_OUT)),
        ({"ARR_DELAY": None}, ("ARR_DELAY",)),
        ({"AIR_TIME": 117, "ARR_DELAY": 0}, ("ARR_DELAY", "AIR_TIME")),
        ({"ORIGIN_AIRPORT_ID": 1}, ("ORIGIN_AIRPORT_ID",)),
        ({"ORIGIN_STATE_NM": "Virginia"}, ()),  # BTS has given IAD to both
        ({"ORIGIN_STATE_NM": "Ohio"}, ("ORIGIN_STATE_NM",)),
        (CANCELLED, ("ARR_DELAY", "CANCELLED")),
    ],
)
def test_an_empty_field_contradicts_nothing_but_a_missing_arrival_does(
    values: dict[str, Value], names: tuple[str, ...]
) -> None:
    assert differences(EXAMPLE, flown(**values)) == names
    assert differences(flown(**values), EXAMPLE) == names


def test_cincinnatis_airport_is_in_ohio_and_in_kentucky() -> None:
    ohio, kentucky = (flown(ORIGIN_STATE_NM=state) for state in ("Ohio", "Kentucky"))
    assert differences(ohio, kentucky) == ()
    assert differences(flown(ORIGIN_STATE_NM="Virginia"), kentucky) == ("ORIGIN_STATE_NM",)


def test_midnight_has_two_spellings() -> None:
    midnight = flown(ARR_TIME="2400", DEP_TIME="0000")
    other = flown(ARR_TIME="0000", DEP_TIME="2400")
    assert differences(midnight, other) == ()
    assert differences(midnight, flown(ARR_TIME="0001", DEP_TIME="2400")) == ("ARR_TIME",)
    without_delay = [flown(DEP_TIME=time, DEP_DELAY=None) for time in ("0000", "2400")]
    assert have_same_departure(*without_delay) is True


UNTIMED = flown(DEP_TIME=None, DEP_DELAY=None)
CANCELLED_AT_8 = flown(**CANCELLED | {"DEP_TIME": "2003", "DEP_DELAY": 8})
LATE = flown(DEP_TIME="0023", DEP_DELAY=28, ARR_TIME="0746", ARR_DELAY=21)
ON_TIME = flown(DEP_TIME="2350", DEP_DELAY=-5, ARR_TIME="0454", ARR_DELAY=-11)


@given(same_or_similar, st.lists(same_or_similar, max_size=6), st.booleans())
@example(LATE, [ON_TIME], False)  # Frontier's flight of the night before
@example(flown(DEP_TIME="2400", DEP_DELAY=10), [flown(DEP_TIME="0000", DEP_DELAY=10)], False)
@example(EXAMPLE, [flown(DEP_TIME="2010", DEP_DELAY=15), flown(DEP_TIME="0600")], False)
@example(EXAMPLE, [flown(DEP_DELAY=None), flown(DEP_TIME="2004", DEP_DELAY=None)], False)
@example(EXAMPLE, [flown(ARR_DELAY=99), flown(AIR_TIME=None)], False)
@example(EXAMPLE, [UNTIMED, flown(ARR_DELAY=99)], False)
@example(EXAMPLE, [UNTIMED], True)
@example(flown(**CANCELLED), [EXAMPLE, flown(**CANCELLED)], False)
@example(flown(**CANCELLED), [flown(**CANCELLED)], True)
@example(CANCELLED_AT_8, [flown(**CANCELLED)], False)
def test_the_match_is_that_of_a_plain_loop(
    flight: Flight, others: list[Flight], exactly: bool
) -> None:
    records = [record for record in others if leg_of(record) == leg_of(flight)]
    expected = found_among(flight, records, exactly=exactly)
    assert match_id(flight, *records, exactly=exactly) == (expected and expected[0])
    if expected is not None:
        assert bool(differences(flight, records[expected[0]])) == expected[1]


@given(st.lists(same_or_similar, max_size=8), st.lists(same_or_similar, max_size=4))
def test_a_file_is_compared_with_what_is_stored_and_with_itself(
    flights: list[Flight], known: list[Flight]
) -> None:
    kept: list[Flight] = []
    expected = []
    for flight in flights:
        is_new = found_among(flight, known) is None
        is_new = is_new and found_among(flight, kept, exactly=True) is None
        kept += [flight] * is_new
        expected.append(is_new)
    of_legs = [
        [record for record in stored(*known) if leg_of(record.flight) == leg_of(flight)]
        for flight in flights
    ]
    assert [record is None for record in all_matches(flights, of_legs)] == expected


def test_the_leg_is_day_carrier_number_and_route() -> None:
    assert leg_of(EXAMPLE) == ("2008-01-03", 19393, 335, "IAD", "TPA")
