"""A leak detector around every test of the index, and a small chain with its index."""

import shutil
from pathlib import Path

import pytest

from backend.index.checkpoint_note import note_settled
from tests import descriptors
from tests.index.worlds import SMALL, follow, in_use, make_chain

no_descriptor_is_left_open = descriptors.no_descriptor_is_left_open


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`SMALL` with its index. Not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    make_chain(folder, SMALL)
    follow(folder)
    return folder


@pytest.fixture
def indexed(small: Path, tmp_path: Path) -> Path:
    """Genesis and four blocks with their index: a copy, noted as what its writer left."""
    folder = Path(shutil.copytree(small, tmp_path / "chain", symlinks=True))
    note_settled(in_use(folder), len(SMALL))
    return folder
