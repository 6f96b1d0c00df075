"""Flights and transactions as values, and the canonical JSON that is hashed."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import InvalidFlight, shown
from backend.base.lru import LONGEST_REMEMBERED
from backend.chain.canonical import MAX_SAFE_INTEGER, canonical, literal
from backend.chain.fields import FIELD_NAMES, FIELDS, Value
from backend.chain.flight import Flight, as_mapping, disagreement, examine, flight_of
from backend.chain.parse_cache import ParseCache
from backend.chain.transaction import transaction, transaction_bytes, transaction_in
from tests.chain import independent
from tests.chain.strategies import any_text, flights, json_like

GOOD: dict[str, object] = {field.name: field.example for field in FIELDS}


@given(flight=flights())
def test_a_valid_flight_is_itself_again(flight: tuple[Value, ...]) -> None:
    assert flight_of(as_mapping(flight)) == flight
    assert examine(as_mapping(flight)) == (flight, [])
    assert disagreement(flight) is None


@given(flight=flights())
def test_a_flight_may_come_as_text_without_its_empty_fields(flight: tuple[Value, ...]) -> None:
    record = {n: str(v) for n, v in as_mapping(flight).items() if v is not None}
    assert flight_of(record) == flight


NAMES = ["\ud800", "x" * 100_000, "a\nb", "", "GATE: 'B7'", "\u202egate", "\0" * 1000, "é"]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:10]))
def test_any_name_of_an_unknown_field_can_stand_in_a_message(name: str) -> None:
    with pytest.raises(InvalidFlight, match="is not a field of a flight") as caught:
        flight_of({**GOOD, name: 1})
    assert caught.value.field == name
    message = str(caught.value)
    assert message.isprintable()
    message.encode()
    assert len(message) < 250
    assert message.startswith(shown(name))


@given(
    changes=st.dictionaries(st.sampled_from(FIELD_NAMES), json_like, max_size=4),
    more=st.dictionaries(any_text, json_like, max_size=1),
    gone=st.sets(st.sampled_from(FIELD_NAMES), max_size=2),
)
def test_any_record_is_a_flight_or_is_refused_and_never_fails_otherwise(
    changes: dict[str, object], more: dict[str, object], gone: set[str]
) -> None:
    record = {n: v for n, v in {**GOOD, **changes, **more}.items() if n not in gone}
    flight, problems = examine(record)
    if problems:
        with pytest.raises(InvalidFlight) as caught:
            flight_of(record)
        assert str(caught.value) == str(problems[0])
        assert all(str(problem).encode() and len(str(problem)) < 400 for problem in problems)
    else:
        assert flight_of(record) == flight
        assert flight_of(as_mapping(flight)) == flight


EXAMPLE: Flight = tuple(field.example for field in FIELDS)
places = st.integers(0, MAX_SAFE_INTEGER)


@given(flight=flights(), transaction_id=places, timestamp=places)
def test_its_bytes_are_those_of_its_21_values(
    flight: Flight, transaction_id: int, timestamp: int
) -> None:
    values = {"TRANSACTION_ID": transaction_id, "timestamp": timestamp, **as_mapping(flight)}
    data = transaction_bytes(transaction(flight, transaction_id, timestamp))
    assert data == independent.canonical(values)
    assert transaction_bytes(transaction_in(data)) == data


def test_it_is_read_in_any_order_and_form() -> None:
    values = {"timestamp": 2, **as_mapping(EXAMPLE), "TRANSACTION_ID": 1}
    parsed = transaction_in(json.dumps(values, indent=1).encode())
    assert parsed == transaction(EXAMPLE, 1, 2)


RECORD = {"TRANSACTION_ID": 1, "timestamp": 2, **as_mapping(EXAMPLE)}
NONE: list[dict[str, object]] = [
    {**RECORD, "GATE": 7},
    {name: value for name, value in RECORD.items() if name != "timestamp"},
    {**RECORD, "YEAR": "2008"},
    {**RECORD, "YEAR": True},
    {**RECORD, "YEAR": None},
    {**RECORD, "timestamp": 2**53},
    {**RECORD, "ORIGIN": ["IAD"]},
]


@pytest.mark.parametrize("values", NONE)
def test_what_is_no_transaction_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        transaction_in(json.dumps(values).encode())


values = st.none() | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.text()
objects = st.dictionaries(st.text("ABCxyz_", min_size=1), values)


@given(value=objects)
def test_both_writers_write_the_same(value: dict[str, Value]) -> None:
    assert canonical(value) == independent.canonical(value)


@given(value=values)
def test_a_literal_is_what_stands_in_the_object(value: Value) -> None:
    assert canonical({"a": value}) == b'{"a":%b}' % literal(value)


REFUSED: list[object] = [
    True,
    False,
    1.0,
    math.nan,
    math.inf,
    2**53,
    -(2**53),
    10**400,
    [],
    {},
    b"text",
    "\ud800",
    "a\udfffb",
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda v: ascii(v)[:20])
def test_a_value_that_json_cannot_hold_exactly_is_refused(value: Value) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical({"a": value})


def test_a_parse_cache_asks_once_and_stays_bounded() -> None:
    asked: list[int] = []

    def negative(key: int) -> int:
        asked.append(key)
        return -key

    cache = ParseCache(negative, entries=100)
    assert [cache[3], cache[3], cache[4]] == [-3, -3, -4]
    assert asked == [3, 4]
    for key in range(300):
        assert cache[key] == -key
        assert len(cache) <= 100


def test_a_parse_cache_does_not_keep_long_texts_or_failures() -> None:
    cache = ParseCache[str, int](int)
    assert cache["1".rjust(LONGEST_REMEMBERED + 1)] == 1
    with pytest.raises(ValueError, match="x"):
        cache["x"]
    assert not cache
