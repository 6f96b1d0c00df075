"""Flights that are told in a moment are those that a look at each field takes, and no others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.fields import FIELD_NAMES, FIELDS, Value
from backend.chain.flight import _examined_each, as_mapping, examine
from backend.chain.stored import Form, stored_flight
from tests.chain.strategies import any_text, flights, json_like

GOOD: dict[str, object] = {field.name: field.example for field in FIELDS}


@given(flight=flights())
def test_a_plain_flight_is_told_at_once_as_it_is(flight: tuple[Value, ...]) -> None:
    if all(text.isascii() for text in flight if isinstance(text, str)):
        assert stored_flight(as_mapping(flight)) == flight


near = st.one_of(
    json_like,
    st.integers(-2, 100_001),
    st.sampled_from([1899, 1900, 2199, 2200, -10_000, 10_000, 3000, 3001, 2**63, 2**64]),
    st.text("0123456789-", max_size=10),
    st.text("AZ09a \n", max_size=5),
    st.text(" A~\t\x7fé", max_size=101),
    st.sampled_from(["A" * 100, "A" * 101, "2400", "2401", "2360", "0960", "754", "2008-02-30"]),
    st.sampled_from(
        ["20080103", "2008-W01-4", "1776-07-04", "2008-01-03\n", "IAD\n", "٢٠٠٨-01-03"]
    ),
)


@given(
    changes=st.dictionaries(st.sampled_from(FIELD_NAMES), near, max_size=3),
    more=st.dictionaries(any_text, json_like, max_size=1),
    gone=st.sets(st.sampled_from(FIELD_NAMES), max_size=1),
)
def test_both_ways_come_to_the_same(
    changes: dict[str, object], more: dict[str, object], gone: set[str]
) -> None:
    record = {n: v for n, v in {**GOOD, **changes, **more}.items() if n not in gone}
    (flight, problems), (closely, found) = examine(record), _examined_each(record)
    assert list(map(str, problems)) == list(map(str, found))
    if not found:
        assert flight == closely
        assert list(map(type, flight)) == list(map(type, closely))


OTHERWISE: list[tuple[str, object]] = [
    ("YEAR", "2008"),
    ("YEAR", 2008.0),
    ("CANCELLED", False),
    ("DEP_TIME", "754"),
    ("DEP_TIME", ""),
    ("ORIGIN", " IAD"),
    ("ORIGIN_CITY_NAME", "Cañon City, CO"),
    ("ORIGIN_CITY_NAME", "Tampa, FL "),
    ("ORIGIN_CITY_NAME", "a\nb"),
    ("FL_DATE", "1/3/2008"),
    ("GATE", "B7"),
]


@pytest.mark.parametrize(("name", "value"), OTHERWISE)
def test_what_has_another_form_gets_a_closer_look(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        stored_flight({**GOOD, name: value})


def test_texts_of_a_form_are_remembered_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form("[A-Z]+")
    assert form.have(("A", "B"))
    assert not form.have(("A", "b"))
    assert not form.have(("b",))  # not even the second time
    monkeypatch.setattr("backend.chain.stored.REMEMBERED", 10)
    for number in range(1000):
        text = chr(65 + number % 26) * (1 + number // 26)
        assert form.have((text, "A"))
        assert len(form._known) <= 12
