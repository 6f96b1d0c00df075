"""One value, one text: canonical JSON and its pieces."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.canonical import MAX_SAFE_INTEGER, canonical, literal
from backend.chain.fields import Value
from tests.chain import independent

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
