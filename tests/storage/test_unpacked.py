"""Blocks that are kept unpacked: within their bytes, the least used go first, never another's."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chain.block import Block, Header, block_of
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks
from backend.storage.unpacked import UnpackedBlocks, unpacked_bytes
from tests.storage.chains import make_chain

NONE = "0" * 64
HEADER = Header(1, 1, NONE, 0, 0, 0, NONE, NONE, NONE, NONE, 0, 0)


def block(number: int) -> Block:
    """A block that can be told from the others; the higher the longer."""
    return block_of(HEADER, bytes([number]) * (1000 * number))


def name(number: int) -> bytes:
    return bytes([number]) * 32


BLOCKS = [block(number) for number in range(8)]
SIZES = [unpacked_bytes(each) for each in BLOCKS]


@given(
    capacity=st.integers(0, sum(SIZES)),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=40),
)
def test_the_least_used_go_first_and_the_bound_is_never_exceeded(
    capacity: int, steps: list[tuple[bool, int]]
) -> None:
    kept, expected, evicted = UnpackedBlocks(capacity), list[int](), 0
    for is_kept, number in steps:
        is_there = number in expected
        if is_kept:
            kept.keep(name(number), BLOCKS[number])
            if not is_there and SIZES[number] <= capacity:
                expected.append(number)
                while sum(SIZES[each] for each in expected) > capacity:
                    del expected[0]
                    evicted += 1
        else:
            assert kept.find(name(number)) is (BLOCKS[number] if is_there else None)
            if is_there:
                expected.remove(number)
                expected.append(number)
        found = kept.statistics()
        assert found.bytes == sum(SIZES[each] for each in expected) <= capacity
        assert (found.blocks, found.evictions) == (len(expected), evicted)
    asked = sum(not is_kept for is_kept, _ in steps)
    assert kept.statistics().hits + kept.statistics().misses == asked


def test_after_it_is_cleared_nothing_is_found() -> None:
    kept = UnpackedBlocks(10**6)
    kept.keep(name(1), BLOCKS[1])
    kept.clear()
    assert kept.find(name(1)) is None
    assert (kept.statistics().blocks, kept.statistics().bytes) == (0, 0)


def test_threads_lose_no_count_and_mix_nothing_up() -> None:
    kept = UnpackedBlocks(SIZES[7] + SIZES[6])

    def use(seed: int) -> None:
        for n in range(2000):
            number = (n * seed) % 8
            assert kept.find(name(number)) in {None, BLOCKS[number]}
            kept.keep(name(number), BLOCKS[number])

    with ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(use, seed) for seed in (1, 3, 5, 7)]:
            one.result()
    found = kept.statistics()
    assert found.hits + found.misses == 8000
    assert found.bytes == sum(map(unpacked_bytes, kept._kept.values())) <= found.capacity_bytes
    assert found.blocks == len(kept._kept)


# --- in front of the frames ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_chain(tmp_path, [3] * 8)
    return tmp_path


def test_a_block_asked_for_again_is_unpacked_once(folder: Path) -> None:
    with closing(BlockStore(folder)) as store:
        cached = CachedBlocks(store, 10**6, 3, unpacked_bytes=10**6)
        first = cached.block_lately(5)
        assert cached.block_lately(5) is first
        assert cached.block(5) == first
        assert cached.block(5) is not first  # verified each time
        found = cached.unpacked_statistics()
        assert (found.hits, found.misses, found.blocks) == (1, 1, 1)


def test_nothing_is_kept_without_room(folder: Path) -> None:
    with closing(BlockStore(folder)) as store:
        cached = CachedBlocks(store, 10**6, 3)
        assert cached.block_lately(5) is not cached.block_lately(5)
        assert cached.unpacked_statistics().blocks == 0


def test_all_is_forgotten_with_the_caches(folder: Path) -> None:
    with closing(BlockStore(folder)) as store:
        cached = CachedBlocks(store, 10**6, 3, unpacked_bytes=10**6)
        cached.block_lately(5)
        cached.clear()
        assert cached.unpacked_statistics().blocks == 0
