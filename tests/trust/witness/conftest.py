"""A chain of a few blocks, its tree, and a witness."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.storage.block_store import BlockStore
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.witness import Witness
from tests.api.worlds import seal, settings_for
from tests.flights import flights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a chain of 5 blocks."""
    found = tmp_path / "chain"
    seal(settings_for(found), [flights(3, serial) for serial in range(0, 12, 3)])
    return found


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return Witness(tmp_path / "witness", "example.org/witness")


@pytest.fixture
def tree(folder: Path) -> Iterator[HistoryTree]:
    store = BlockStore(folder)
    yield HistoryTree(store)
    store.close()
