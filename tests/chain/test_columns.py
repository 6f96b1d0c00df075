"""Columns and bodies: nothing is lost, nothing is added, and there is one way to write it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.base.words import counted
from backend.chain.columns import (
    COLUMN_NAMES,
    BodyError,
    Column,
    column_of,
    columns_of,
    decode_body,
    encode_body,
    transaction_bytes,
)
from backend.chain.fields import Value
from backend.chain.flight import Flight
from tests.chain import independent
from tests.chain.independent import row
from tests.chain.strategies import batches, rows_of

Batch = tuple[list[Flight], list[int]]
values = st.none() | st.integers() | st.text(max_size=3)
TWO = [row(), row(OP_CARRIER_FL_NUM=336, ARR_DELAY=None)]
TWO_BODY = independent.encode_body(TWO)


@given(rows=st.lists(values))
def test_a_column_expands_to_its_rows(rows: list[Value]) -> None:
    column = column_of(rows)
    assert column.expanded() == rows
    assert list(column.values) == list(dict.fromkeys(rows))


@pytest.mark.parametrize(("distinct", "width"), [(1, 1), (255, 1), (256, 1), (257, 2), (1000, 2)])
def test_codes_take_one_byte_up_to_256_values(distinct: int, width: int) -> None:
    codes = column_of(range(distinct)).codes
    assert list(codes) == list(range(distinct))
    assert memoryview(codes).itemsize == width  # type: ignore[arg-type]


@given(batch=batches())
def test_a_body_decodes_to_the_columns_it_was_made_of(batch: Batch) -> None:
    columns = columns_of(*batch)
    decoded = decode_body(encode_body(columns), columns.count)
    assert decoded.count == columns.count == len(batch[0])
    for name in COLUMN_NAMES:
        assert decoded[name].expanded() == columns[name].expanded()
        assert list(decoded[name].values) == list(columns[name].values)


@given(batch=batches())
def test_both_writers_make_the_same_body(batch: Batch) -> None:
    assert encode_body(columns_of(*batch)) == independent.encode_body(rows_of(*batch))


@given(batch=batches(), name=st.sampled_from(COLUMN_NAMES))
def test_one_column_can_be_decoded_alone(batch: Batch, name: str) -> None:
    columns = columns_of(*batch)
    decoded = decode_body(encode_body(columns), columns.count, (name,))
    assert list(decoded.by_name) == [name]
    assert decoded[name].expanded() == columns[name].expanded()


@given(batch=batches(), first=st.integers(0, 2**53 - 100))
@example(batch=([], []), first=0)
def test_transaction_bytes_are_the_canonical_bytes_of_each(batch: Batch, first: int) -> None:
    columns = columns_of(*batch)
    assert transaction_bytes(columns, first) == independent.transactions(rows_of(*batch), first)


@given(batch=batches())
def test_a_row_is_the_transaction_without_its_id(batch: Batch) -> None:
    columns = columns_of(*batch)
    assert [columns.row(i) for i in range(columns.count)] == rows_of(*batch)


@given(at=st.integers(0, len(TWO_BODY)), cut=st.integers(0, 3), put=st.binary(max_size=3))
def test_a_spoiled_body_is_refused_or_decoded_and_never_fails_otherwise(
    at: int, cut: int, put: bytes
) -> None:
    spoiled = TWO_BODY[:at] + put + TWO_BODY[at + cut :]
    try:
        columns = decode_body(spoiled, 2)
    except BodyError:
        return
    assert len(list(columns.rows())) == 2


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**64])
def test_a_body_of_another_number_of_rows_is_refused(count: int) -> None:
    with pytest.raises(BodyError, match=f"not a body of {counted(count, 'transaction')}: "):
        decode_body(TWO_BODY, count)


def test_columns_of_no_flights_have_all_names_and_no_values() -> None:
    columns = columns_of([], [])
    assert columns.count == 0
    assert dict(columns.by_name) == {name: Column([], b"") for name in COLUMN_NAMES}
