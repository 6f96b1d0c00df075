"""A flight whose values are remembered is judged as one that each field is asked about."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.fields import FIELD_NAMES, FIELDS, Value
from backend.chain.flight import _examined_each, as_mapping, examine
from tests.chain.strategies import any_text, flights, json_like

GOOD: dict[str, object] = {field.name: field.example for field in FIELDS}


def require_same(record: Mapping[str, object]) -> tuple[Value, ...]:
    """Fail unless both ways come to the same; the flight."""
    (flight, problems), (closely, found) = examine(record), _examined_each(record)
    assert list(map(str, problems)) == list(map(str, found))
    if not found:
        assert flight == closely
        assert list(map(type, flight)) == list(map(type, closely))
    return flight


@given(flight=flights())
def test_a_flight_as_it_is_stored_stays_as_it_is(flight: tuple[Value, ...]) -> None:
    assert require_same(as_mapping(flight)) == flight


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
    require_same({n: v for n, v in {**GOOD, **changes, **more}.items() if n not in gone})


LOOSELY: list[tuple[str, object]] = [
    ("YEAR", "2008"),
    ("YEAR", 2008.0),
    ("CANCELLED", 0.0),
    ("CANCELLED", False),
    ("CANCELLED", True),
    ("DAY_OF_WEEK", [4]),
    ("DAY_OF_WEEK", {}),
    ("DEP_TIME", "754"),
    ("DEP_TIME", 754),
    ("DEP_TIME", ""),
    ("ORIGIN", " IAD"),
    ("ORIGIN_CITY_NAME", "Cañon City, CO"),
    ("ORIGIN_CITY_NAME", "Tampa, FL "),
    ("ORIGIN_CITY_NAME", "a\nb"),
    ("FL_DATE", "1/3/2008"),
    ("GATE", "B7"),
]


@pytest.mark.parametrize(("name", "value"), LOOSELY)
def test_what_was_remembered_of_another_flight_changes_nothing(name: str, value: object) -> None:
    for record in ({**GOOD, name: value}, GOOD, {**GOOD, name: value}):
        require_same(record)


def test_fields_that_may_be_empty_may_be_absent_and_no_others() -> None:
    present = {n: v for n, v in GOOD.items() if n not in {"DEP_TIME", "AIR_TIME"}}
    assert require_same(present) == require_same({**present, "DEP_TIME": None, "AIR_TIME": ""})
    _, problems = examine({n: v for n, v in GOOD.items() if n != "ORIGIN"})
    assert [problem.field for problem in problems] == ["ORIGIN"]
