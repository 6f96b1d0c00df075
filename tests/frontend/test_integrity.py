"""What the frontend recomputes of a block: it agrees with real blocks, and with nothing else."""

import copy
import json
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.block import Header
from backend.chain.fields import FIELD_NAMES
from frontend import integrity
from frontend.fields import HEADER_NAMES, TRANSACTION_NAMES
from tests.api.processes import Service
from tests.api.worlds import World

Json = dict[str, Any]
VECTORS = Path(__file__).parents[1] / "chain" / "vectors"
FULL = 4  # height of a block with 59 transactions: an odd number, and no power of two


def block(service: Service, height: int) -> Json:
    found: Json = service.json(f"/blocks/{height}")["block"]
    return found


def checks_of(
    block: Json, below: Json | None = None, above: Json | None = None
) -> list[integrity.Check]:
    return integrity.header_checks(block, below, above) + integrity.transaction_checks(block)


def failed(checks: list[integrity.Check]) -> list[str]:
    return [check.what for check in checks if check.holds is False]


VALUES = st.none() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text()


def test_the_tables_name_the_fields_of_the_ledger() -> None:
    assert list(HEADER_NAMES) == [field.name for field in dataclass_fields(Header)]
    assert list(TRANSACTION_NAMES) == ["TRANSACTION_ID", "timestamp", *FIELD_NAMES]


def test_every_block_of_a_chain_passes(service: Service, world: World) -> None:
    blocks = [block(service, height) for height in range(world.tip + 1)]
    assert [integrity.block_hash(each) for each in blocks] == world.hashes
    for below, here, above in zip([None, *blocks], blocks, [*blocks[1:], None], strict=False):
        checks = checks_of(here, below, above)
        assert failed(checks) == []
        assert [check.holds for check in checks].count(None) == (above is None)


def test_it_reads_the_frozen_vectors_the_same_way() -> None:
    blocks = json.loads((VECTORS / "chain.json").read_text())["blocks"]
    for each in blocks:
        assert integrity.block_hash(json.loads(each["header"])) == each["hash"]


@given(st.dictionaries(st.sampled_from(TRANSACTION_NAMES), VALUES))
def test_canonical_bytes_are_those_of_the_standard_library(record: Json) -> None:
    whole = dict.fromkeys(TRANSACTION_NAMES) | record
    expected = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for known in (record, whole, {**record, "BLOCK_HEIGHT": 7}):
        assert integrity.canonical(known, TRANSACTION_NAMES) == expected.encode()


def test_nothing_in_front_of_a_hash_counts_as_zero_bits() -> None:
    assert integrity.leading_zero_bits("0" * 64) == 256
    assert integrity.leading_zero_bits("00f" + "0" * 61) == 8
    assert integrity.leading_zero_bits("001" + "0" * 61) == 11
    assert integrity.leading_zero_bits("8" + "0" * 63) == 0


@pytest.mark.parametrize("name", HEADER_NAMES)
def test_a_changed_header_no_longer_has_its_hash(service: Service, name: str) -> None:
    changed = block(service, FULL)
    value = changed[name]
    changed[name] = value + 1 if isinstance(value, int) else "0" * 63 + "1"
    below, above = block(service, FULL - 1), block(service, FULL + 1)
    wrong = failed(integrity.header_checks(changed, below, above))
    assert "Its hash is the SHA-256 of its header" in wrong
    del changed[name]
    assert integrity.block_hash(changed) != changed["hash"]


def test_a_header_with_its_hash_made_anew_does_not_fit_its_neighbours(service: Service) -> None:
    forged = block(service, FULL)
    forged["timestamp"] += 1
    forged["hash"] = integrity.block_hash(forged)
    below, above = block(service, FULL - 1), block(service, FULL + 1)
    assert failed(integrity.header_checks(forged, below, above)) == [
        f"Block {FULL + 1} contains its hash"
    ]
    above["previous_hash"] = forged["hash"]
    assert failed(integrity.header_checks(above, forged, None)) == [
        "Its hash is the SHA-256 of its header"
    ]


def test_a_neighbour_is_not_believed_about_its_own_hash(service: Service) -> None:
    here, below = block(service, FULL), block(service, FULL - 1)
    below["nonce"] += 1  # and says the hash that it had
    checks = integrity.header_checks(here, below, None)
    assert failed(checks) == [f"It contains the hash of block {FULL - 1}"]
    (check,) = [check for check in checks if check.holds is False]
    assert check.claimed == here["previous_hash"]
    assert check.computed == integrity.block_hash(below)


def test_too_few_zero_bits_are_told_with_both_numbers(service: Service) -> None:
    here = block(service, FULL)
    here["difficulty_bits"] = 200
    here["hash"] = integrity.block_hash(here)
    (check,) = [
        check for check in integrity.header_checks(here, None, None) if check.holds is False
    ]
    assert check.claimed == "200 zero bits"
    assert check.computed == f"{integrity.leading_zero_bits(here['hash'])} zero bits"


def test_genesis_may_name_no_block(service: Service) -> None:
    genesis = block(service, 0)
    genesis["previous_hash"] = "f" * 64
    genesis["hash"] = integrity.block_hash(genesis)
    assert failed(integrity.header_checks(genesis, None, None)) == [
        "It is the first block, so its previous hash is all zeros"
    ]


def _swap(rows: list[Json]) -> None:
    rows[0], rows[1] = rows[1], rows[0]


COUNT = "Its transactions have the ids that its header states"
ROOT = "Its Merkle root is the one computed from its transactions"
TAMPERING: list[tuple[str, Callable[[list[Json]], object], list[str]]] = [
    ("a delay made smaller", lambda rows: rows[3].update(ARR_DELAY=0.0), [ROOT]),
    ("a null for a value", lambda rows: rows[3].update(DEST_CITY_NAME=None), [ROOT]),
    ("a field left out", lambda rows: rows[3].pop("ORIGIN"), [ROOT]),
    ("another acceptance time", lambda rows: rows[58].update(timestamp=0), [ROOT]),
    ("text that is no Unicode", lambda rows: rows[0].update(ORIGIN="\ud800"), [ROOT]),
    ("the last one left out", lambda rows: rows.pop(), [COUNT, ROOT]),
    ("all left out", lambda rows: rows.clear(), [COUNT, ROOT]),
    ("one twice", lambda rows: rows.append(rows[-1]), [COUNT, ROOT]),
    ("two exchanged", _swap, [COUNT, ROOT]),
]


@pytest.mark.parametrize(("how", "tamper", "expected"), TAMPERING)
def test_tampered_transactions_are_found(
    service: Service, how: str, tamper: Callable[[list[Json]], object], expected: list[str]
) -> None:
    spoiled = copy.deepcopy(block(service, FULL))
    tamper(spoiled["transactions"])
    checks = integrity.transaction_checks(spoiled)
    assert failed(checks) == expected, how
    assert all(check.claimed != check.computed for check in checks if check.holds is False)
