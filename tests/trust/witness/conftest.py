"""The tree of a chain, the log of it, and a witness."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.storage.block_store import BlockStore
from backend.trust.log.secret_keys import SecretKey, log_key
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.witness import Witness
from tests.trust.witness.logs import grow


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "witness", "example.org/witness")


@pytest.fixture
def tree(folder: Path) -> Iterator[HistoryTree]:
    store = BlockStore(folder)
    yield HistoryTree(store)
    store.close()


@pytest.fixture
def log(folder: Path) -> SecretKey:
    """The key of the log, which has 7 blocks."""
    grow(folder)
    grow(folder, 200)
    return log_key(folder)
