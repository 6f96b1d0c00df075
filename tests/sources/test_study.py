import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import BadRow, InvalidFlight, InvalidInput
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import flight_of
from backend.sources.source import raw_rows, validated
from backend.sources.study import MAX_FILE_BYTES, StudyBlocks
from tests.sources.samples import FLOWN, PACKINGS, ROWS, flights_of, rows_of, written

FLIGHTS = [flight_of(row) for row in ROWS]
LEDGER_OWN = {"TRANSACTION_ID": "17", "timestamp": "1600000000.5", "transaction_id": 17}


def block(*transactions: object, **others: object) -> str:
    return json.dumps({"index": 3, "transactions": transactions, "nonce": 12} | others)


def numbered(number: int) -> dict[str, str]:
    return FLOWN | {"OP_CARRIER_FL_NUM": str(number)}


@pytest.mark.parametrize("packing", ["plain", "gzip", "xz"])
def test_transactions_of_a_block_file(tmp_path: Path, packing: str) -> None:
    decimal = [row | LEDGER_OWN for row in ROWS]
    decimal[0] = decimal[0] | {"ARR_DELAY": "-14.00", "CANCELLED": "0.00"}
    path = written(tmp_path, PACKINGS[packing](block(*decimal).encode()))
    source = StudyBlocks(path)
    assert source.progress() == 0
    assert flights_of(source) == FLIGHTS
    assert source.progress() == 1


def test_numbers_and_nulls_do_as_well_as_strings(tmp_path: Path) -> None:
    row: dict[str, Any] = FLOWN | {"ARR_DELAY": -14.0, "CANCELLED": 0, "DEP_TIME": None}
    path = written(tmp_path, block(row))
    assert flights_of(StudyBlocks(path)) == [flight_of(row)]


def test_folder_is_read_in_numeric_order(tmp_path: Path) -> None:
    written(tmp_path, block(), "block0.json")
    for number in (10, 9, 1, 100):
        written(tmp_path, block(numbered(number)), f"block{number}.json")
    written(tmp_path, "not a block", "notes.txt")
    source = StudyBlocks(tmp_path)
    assert [flight[4] for flight in flights_of(source)] == [1, 9, 10, 100]
    assert source.progress() == 1


def test_genesis_without_transactions_is_no_flights(tmp_path: Path) -> None:
    assert flights_of(StudyBlocks(written(tmp_path, block()))) == []


def test_long_blocks_come_in_batches(tmp_path: Path) -> None:
    path = written(tmp_path, block(*map(numbered, range(1, 2502))))
    batches = list(validated(StudyBlocks(path)))
    assert [len(batch[0]) for batch in batches] == [1000, 1000, 501]
    assert [row[4] for row in rows_of(batches)] == list(range(1, 2502))


def test_bad_transactions_are_named_by_file_and_number(tmp_path: Path) -> None:
    written(tmp_path, block(FLOWN), "1.json")
    lacking = {name: value for name, value in FLOWN.items() if name != "FL_DATE"}
    flags = FLOWN | {"CANCELLED": False}
    lists = FLOWN | {"ARR_DELAY": [1]}
    written(tmp_path, block(*[FLOWN] * 1000, lacking, 7, FLOWN, flags, lists), "2.json")
    bad: list[BadRow] = []
    assert len(rows_of(list(validated(StudyBlocks(tmp_path), bad.append)))) == 1002
    place = f"{tmp_path.name}/2.json, transaction"
    assert [str(problem) for problem in bad] == [
        f"{place} 1001: FL_DATE is missing; this field is required",
        f"{place} 1002: transaction 7: must be an object",
        f"{place} 1004: CANCELLED False: must be a whole number",
        f"{place} 1005: ARR_DELAY [1]: must be a whole number",
    ]
    with pytest.raises(BadRow, match="transaction 1001"):
        flights_of(StudyBlocks(tmp_path))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "is not JSON"),
        ('{"transactions": [', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"transactions": [{"YEAR": ' + "9" * 5000 + "}]}", "is not JSON"),
        (b'{"transactions": ["\xff"]}', "is not JSON"),
        ("[]", "is not a block of the study"),
        ('{"index": 1}', "is not a block of the study"),
        ('{"transactions": "none"}', "is not a block of the study"),
    ],
)
def test_what_is_no_block_is_refused(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=rf"'7\.json': {complaint}"):
        flights_of(StudyBlocks(written(tmp_path, content, "7.json")))


def test_file_too_long_for_memory_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, PACKINGS["gzip"](b" " * (MAX_FILE_BYTES + 1)))
    with pytest.raises(InvalidInput, match=f"longer than {MAX_FILE_BYTES} bytes"):
        flights_of(StudyBlocks(path))


def test_folder_without_blocks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no \.json files"):
        StudyBlocks(tmp_path)


JSON = st.one_of(
    *(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=3)),
    st.lists(st.booleans(), max_size=1),
    st.sampled_from(["1", "0", "2008", "2008-01-03", "\ud800"]),
)


@given(st.lists(st.tuples(st.sampled_from(FIELD_NAMES), JSON), max_size=6))
def test_any_json_value_is_taken_or_refused_as_flight_of_does(
    changes: list[tuple[str, object]],
) -> None:
    transactions = [dict[str, object](FLOWN) | {name: value} for name, value in changes]
    expected = []
    for transaction in transactions:
        try:
            expected.append(flight_of(transaction))
        except InvalidFlight:
            continue

    class InMemory(StudyBlocks):
        def __init__(self) -> None:
            self.label = "block"

        def rows(self) -> Any:
            yield raw_rows(enumerate(transactions, 1))

    bad: list[BadRow] = []
    assert rows_of(list(validated(InMemory(), bad.append))) == expected
    assert len(bad) == len(transactions) - len(expected)
