"""The audit finds what it is there to find."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backend.base.clock import now_ms
from backend.chain.canonical import canonical
from backend.chain.flight import Flight, as_mapping
from backend.chain.merkle import leaf_hash
from tests import harming
from tests.api.worlds import settings_for
from tests.faults.auditing import as_row, asked_about, audit, differing, with_ids
from tests.faults.clients import Memory, Receipt
from tests.faults.report import Outcome
from tests.flights import flight, flights
from tests.storage.chains import block_file, flip
from tests.submitting import accept_in, sealing

POSTED, IMPORTED = 20, 30
FIRST = 1000


def sealed(folder: Path, rows: list[Flight]) -> Memory:
    """A chain with these flights, and the memory of a client that posted the first of them."""
    with sealing(settings_for(folder)) as sealer:
        accepted = accept_in(sealer.mempool, rows, now_ms())
        sealer.seal_pending()
    receipts = [receipt(number, accepted.timestamp) for number in range(POSTED)]
    return Memory(FIRST, POSTED, receipts)


def receipt(number: int, timestamp: int) -> Receipt:
    transaction = {
        "TRANSACTION_ID": number,
        "timestamp": timestamp,
        **as_mapping(flight(FIRST + number)),
    }
    return Receipt(number, leaf_hash(canonical(transaction)).hex(), FIRST + number)


def audited(folder: Path, memory: Memory, imported: list[Flight]) -> Outcome:
    outcome = Outcome()
    audit(folder, [memory], outcome, imported)
    return outcome


POSTS, ROWS = flights(POSTED, FIRST), flights(IMPORTED)


def test_nothing_is_found_where_everything_is_right(folder: Path) -> None:
    outcome = audited(folder, sealed(folder, POSTS + ROWS), ROWS)
    assert (outcome.findings, outcome.acknowledged) == ([], POSTED)


def later(memory: Memory) -> Memory:
    return replace(memory, acknowledged=[Receipt(POSTED + IMPORTED, "", FIRST)])


def elsewhere(memory: Memory) -> Memory:
    return replace(memory, acknowledged=[replace(memory.acknowledged[0], transaction_id=1)])


def otherwise(memory: Memory) -> Memory:
    return replace(memory, acknowledged=[replace(memory.acknowledged[0], content_hash="0" * 64)])


@pytest.mark.parametrize(
    ("falsify", "words"),
    [(later, "ends before it"), (elsewhere, "another flight"), (otherwise, "content hash")],
)
def test_a_flight_that_is_not_where_it_was_acknowledged_is_lost(
    folder: Path, falsify: Callable[[Memory], Memory], words: str
) -> None:
    outcome = audited(folder, falsify(sealed(folder, POSTS + ROWS)), ROWS)
    (finding,) = outcome.of_kind("lost")
    assert words in finding


def test_a_flight_that_is_there_twice_is_found(folder: Path) -> None:
    outcome = audited(folder, sealed(folder, POSTS + ROWS + POSTS[:1]), ROWS)
    assert len(outcome.of_kind("doubled")) == 1


def test_rows_of_an_import_that_are_missing_or_in_disorder_are_found(folder: Path) -> None:
    memory = sealed(folder, POSTS + ROWS)
    assert audited(folder, memory, [*ROWS, flight(IMPORTED)]).of_kind("lost")
    assert audited(folder, memory, ROWS[::-1]).of_kind("lost")


def test_a_flight_that_nobody_submitted_is_found(folder: Path) -> None:
    outcome = audited(folder, sealed(folder, POSTS + ROWS), ROWS[:-1])
    assert len(outcome.of_kind("wrong")) == 1


def test_a_chain_that_does_not_verify_is_found(folder: Path) -> None:
    memory = sealed(folder, POSTS + ROWS)
    flip(block_file(folder), block_file(folder).stat().st_size - 100)
    assert "does not verify" in audited(folder, memory, ROWS).of_kind("lost")[0]


def test_answers_are_held_against_a_plain_loop() -> None:
    rows = [as_row(number, row) for number, row in enumerate(POSTS)]
    (_, legs), (_, delays), (_, counted) = asked_about(rows[3], rows)
    assert with_ids(legs) == {"count": 1, "flights": [3]}
    assert counted == {"count": POSTED}
    assert delays["flights"] == POSTED
    assert differing({"count": 1, "flights": [{"TRANSACTION_ID": 3}]}, legs) == ""
    assert "[4]" in differing({"count": 1, "flights": [{"TRANSACTION_ID": 4}]}, legs)
    assert differing({"count": POSTED - 1}, counted)


@pytest.mark.parametrize("harm", harming.HARMS)
def test_every_harm_changes_the_file(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(1, 251)) * 10)
    before = path.read_bytes()
    harming.harm(path, harm, random.Random(1))
    assert not path.exists() or path.read_bytes() != before
