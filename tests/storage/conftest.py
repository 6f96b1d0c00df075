"""A leak detector around every test of the storage, and the sample chains."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.storage.codec import compress
from tests.descriptors import descriptors_of
from tests.storage.chains import (
    GENESIS_MS,
    Sample,
    flights,
    sample_of,
    writing,
)

LONG_CHAIN_BLOCKS = 1_200


def open_files() -> set[str]:
    """Returns the files of blocks and locks that this process has open, by descriptor."""
    items = descriptors_of().items()
    return {f"{at} -> {name}" for at, name in items if "blocks" in name or "writer.lock" in name}


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open() -> Iterator[None]:
    before = open_files()
    yield
    if open_files() - before:
        gc.collect()  # a file that an error refers to is open as long as the error is kept
    assert open_files() - before == set()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Genesis and five blocks, one of them without transactions."""
    return sample_of(tmp_path_factory.mktemp("sample"), [3, 0, 2, 4, 1])


@pytest.fixture(scope="session")
def long_chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,200 blocks in three files, one in ten with a transaction. Not to be written to."""
    folder = tmp_path_factory.mktemp("long")
    with writing(folder, block_file_bytes=300_000) as writer:
        contents = [flights(count, writer.state.timestamp) for count in (0, 1)]
        compressed = [compress(content.body) for content in contents]
        while writer.state.height + 1 < LONG_CHAIN_BLOCKS:
            count = int(writer.state.height % 10 == 9)
            block = writer.state.build(GENESIS_MS, contents[count])
            writer.append(block, compressed[count])
        writer.commit()
    return folder
