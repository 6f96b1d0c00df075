"""`verify` holds the receipts of a node against its blocks."""

from pathlib import Path

import pytest

from backend.base.errors import Damage
from backend.storage import checked_sqlite
from backend.storage.receipt_store import FILE_NAME
from backend.verify.audit import verify
from tests.cluster.engine import Engine

WRONG = {
    "another hash": "UPDATE block SET hash = substr(hash, 2) || '0' WHERE height = 2",
    "another sender": "UPDATE block SET senders = zeroblob(length(senders)) WHERE height = 2",
    "a flight less": "UPDATE block SET senders = substr(senders, 2) WHERE height = 2",
    "another number": "UPDATE run SET following = following + 1 WHERE height = 2 AND node = 1",
    "a gap in numbers": (
        "UPDATE run SET first = first + 1, following = following + 1 WHERE height = 3 AND node = 0"
    ),
    "no entry": "DELETE FROM block WHERE height = 2",
    "no entry of the newest": "DELETE FROM block WHERE height = 3",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The chain of a node, which three blocks of two nodes are in."""
    with Engine(tmp_path, 2) as engine:
        one, other = engine.nodes
        engine.decide([one.sent(0, 5), other.sent(0, 3)])
        engine.decide([one.sent(5, 2), other.sent(3, 4)])
        engine.decide([one.sent(7, 1)])
    return Path(one.settings.dir)


def test_receipts_that_fit_are_counted(folder: Path) -> None:
    assert "the receipts of 3 blocks fit" in verify(folder).mempool


@pytest.mark.parametrize("statement", WRONG.values(), ids=WRONG)
def test_an_entry_that_does_not_fit_is_named(folder: Path, statement: str) -> None:
    connection = checked_sqlite.connect(folder / FILE_NAME)
    connection.execute(statement)
    assert connection.changes() == 1
    connection.close()
    with pytest.raises(Damage, match=f"{FILE_NAME}: .*block [23]"):
        verify(folder)
