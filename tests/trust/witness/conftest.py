"""The tree of a chain, and a witness."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.storage.block_store import BlockStore
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.witness import Witness


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "witness", "example.org/witness")


@pytest.fixture
def tree(folder: Path) -> Iterator[HistoryTree]:
    store = BlockStore(folder)
    yield HistoryTree(store)
    store.close()
