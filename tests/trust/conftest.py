"""The folder of a small chain, which is made once, and copied for every test."""

import shutil
from pathlib import Path

import pytest

from tests.api.worlds import seal, settings_for
from tests.flights import flights
from tests.index.worlds import settle


@pytest.fixture(scope="session")
def five_blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a chain of 5 blocks. Not to be changed."""
    chain = tmp_path_factory.mktemp("five") / "chain"
    seal(settings_for(chain), [flights(3, serial) for serial in range(0, 12, 3)])
    return chain


@pytest.fixture
def folder(five_blocks: Path, tmp_path: Path) -> Path:
    """The folder of a chain of 5 blocks, to be changed."""
    chain = Path(shutil.copytree(five_blocks, tmp_path / "chain", symlinks=True))
    settle(chain)
    return chain
