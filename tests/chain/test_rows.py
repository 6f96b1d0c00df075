"""Rows of a body as JSON: those that decoding the whole body would give, wherever they stand."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.columns import (
    COLUMN_NAMES,
    BodyError,
    Columns,
    columns_of,
    directory_of,
    encode_body,
)
from backend.chain.fields import Value
from backend.chain.flight import Flight
from backend.chain.single_transactions import transactions_json
from tests.cases import each_of
from tests.chain import independent
from tests.chain.independent import EXAMPLE, row
from tests.chain.strategies import batches

Batch = tuple[list[Flight], list[int]]
TWO_BODY = independent.encode_body([row(), row(OP_CARRIER_FL_NUM=336, ARR_DELAY=None)])
SMALL = st.integers(0, 12)


@given(batch=batches(), first=st.integers(0, 2**53), start=SMALL, stop=SMALL)
def test_rows_are_the_transactions_as_json(batch: Batch, first: int, start: int, stop: int) -> None:
    columns = columns_of(*batch)
    rows = transactions_json(encode_body(columns), columns.count, first, start, stop)
    assert rows == [msgspec.json.encode(each) for each in transactions(columns, first)[start:stop]]


def transactions(columns: Columns, first: int) -> list[dict[str, Value]]:
    """The transactions of a block, of which the first has this id."""
    return [{**columns.row(i), "TRANSACTION_ID": first + i} for i in range(columns.count)]


def many(count: int) -> tuple[bytes, list[dict[str, Value]]]:
    """A body in which every row has values of its own, with commas, quotes and gaps."""
    flights = []
    for i in range(count):
        texts = {"ORIGIN_CITY_NAME": f'"{i}, \\ [é",', "DEST_CITY_NAME": ","}
        late = {"ARR_DELAY": None if i == 300 else i - 500, "OP_CARRIER_FL_NUM": i + 1}
        time = None if i == 7 else f"{i // 60:02}{i % 60:02}"
        times = {"DEP_TIME": time, "ARR_TIME": None if i == 2 else "0000"}
        flights.append(tuple({**EXAMPLE, **texts, **late, **times}.values())[:-1])
    columns = columns_of(flights, [1_700_000_000_000 + i for i in range(count)])
    return encode_body(columns), transactions(columns, 7)


@pytest.mark.parametrize("count", [256, 257, 1000])
def test_every_row_is_found_alone_in_long_dictionaries(count: int) -> None:
    body, expected = many(count)
    for i in [*range(0, count, 7), 2, 255, count - 1]:
        (encoded,) = transactions_json(body, count, 7, i, i + 1)
        assert json.loads(encoded) == expected[i]


@given(start=st.integers(0, 1100), size=st.integers(0, 1100))
def test_any_run_of_rows_is_found_in_long_dictionaries(start: int, size: int) -> None:
    rows = transactions_json(MANY[0], 1000, 7, start, start + size)
    assert rows == [msgspec.json.encode(each) for each in MANY[1][start : start + size]]


MANY = many(1000)


@given(at=st.integers(0, len(TWO_BODY)), cut=st.integers(0, 3), put=st.binary(max_size=3))
def test_a_spoiled_body_is_refused_or_read_and_never_fails_otherwise(
    at: int, cut: int, put: bytes
) -> None:
    spoiled = TWO_BODY[:at] + put + TWO_BODY[at + cut :]
    try:
        assert len(transactions_json(spoiled, 2, 0, 0, 2)) == 2
    except BodyError as error:
        assert "not a body of 2 transactions" in str(error)


@each_of("column", range(len(COLUMN_NAMES)))
def test_a_code_beyond_the_values_of_any_column_is_a_body_error(column: int) -> None:
    _, codes_at, _ = directory_of(TWO_BODY)[column]
    for wrong in (b"\x02", b"\xff"):
        spoiled = TWO_BODY[: codes_at + 1] + wrong + TWO_BODY[codes_at + 2 :]
        for start in (0, 1):  # with its neighbour, and alone
            with pytest.raises(BodyError):
                transactions_json(spoiled, 2, 0, start, 2)
