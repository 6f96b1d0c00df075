"""The canonical bytes of transactions: those of any object, made faster."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.canonical import MAX_SAFE_INTEGER
from backend.chain.fields import FIELDS
from backend.chain.flight import Flight, as_mapping
from backend.chain.transaction import transaction, transaction_bytes, transaction_in
from tests.chain import independent
from tests.chain.strategies import flights

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
    found = transaction_in(json.dumps(values, indent=1).encode())
    assert found == transaction(EXAMPLE, 1, 2)


GOOD = {"TRANSACTION_ID": 1, "timestamp": 2, **as_mapping(EXAMPLE)}
NONE: list[dict[str, object]] = [
    {**GOOD, "GATE": 7},
    {name: value for name, value in GOOD.items() if name != "timestamp"},
    {**GOOD, "YEAR": "2008"},
    {**GOOD, "YEAR": True},
    {**GOOD, "YEAR": None},
    {**GOOD, "timestamp": 2**53},
    {**GOOD, "ORIGIN": ["IAD"]},
]


@pytest.mark.parametrize("values", NONE)
def test_what_is_no_transaction_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        transaction_in(json.dumps(values).encode())
