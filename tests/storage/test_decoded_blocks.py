"""Blocks that are kept unpacked: within their bytes, and never another's."""

from contextlib import closing
from pathlib import Path

import pytest

from backend.chain.block import Block, Header, block_of
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks
from backend.storage.decoded_blocks import DecodedBlockCache, unpacked_bytes
from tests.storage.chains import make_chain

NONE = "0" * 64
HEADER = Header(1, 1, NONE, 0, 0, 0, NONE, NONE, NONE, NONE, 0, 0)


def block(number: int) -> Block:
    """A block that can be told from the others; the higher the longer."""
    return block_of(HEADER, bytes([number]) * (1000 * number))


def test_a_block_counts_with_its_body_and_header() -> None:
    blocks = [block(number) for number in (5, 6)]
    kept = DecodedBlockCache(10**6)
    for number, one in enumerate(blocks):
        kept.keep(bytes([number]) * 32, one)
    counts = kept.statistics()
    assert (counts.name, counts.blocks, counts.capacity_bytes) == ("unpacked", 2, 10**6)
    assert counts.bytes == sum(map(unpacked_bytes, blocks))
    assert counts.bytes > sum(len(one.body) + len(one.header_bytes) for one in blocks)


# --- in front of the frames ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_chain(tmp_path, [3] * 8)
    return tmp_path


def test_a_block_asked_for_again_is_unpacked_once(folder: Path) -> None:
    with closing(BlockStore(folder)) as store:
        cached = CachedBlocks(store, 10**6, 3, unpacked_bytes=10**6)
        first = cached.cached_block(5)
        assert cached.cached_block(5) is first
        assert cached.block(5) == first
        assert cached.block(5) is not first  # verified each time
        counts = cached.unpacked_statistics()
        assert (counts.hits, counts.misses, counts.blocks) == (1, 1, 1)


def test_nothing_is_kept_without_room(folder: Path) -> None:
    with closing(BlockStore(folder)) as store:
        cached = CachedBlocks(store, 10**6, 3)
        assert cached.cached_block(5) is not cached.cached_block(5)
        assert cached.unpacked_statistics().blocks == 0
