"""A flight as a whole: all its fields, no others, and in agreement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import InvalidFlight, shown
from backend.chain.fields import FIELD_NAMES, FIELDS, Value
from backend.chain.flight import as_mapping, disagreement, examine, flight_of
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


def test_a_flight_may_be_cancelled_after_it_left_the_gate() -> None:
    gone = {"CANCELLED": 1, "ARR_TIME": "", "ARR_DELAY": "", "AIR_TIME": ""}
    assert as_mapping(flight_of({**GOOD, **gone}))["DEP_TIME"] == "2003"


def test_a_flight_may_have_no_arrival_and_yet_not_be_cancelled() -> None:
    diverted = {"ARR_TIME": "", "ARR_DELAY": "", "AIR_TIME": ""}
    assert as_mapping(flight_of({**GOOD, **diverted}))["CANCELLED"] == 0


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
