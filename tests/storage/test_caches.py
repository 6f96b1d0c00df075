"""The two caches, against the store below them."""

import gc
import os
import random
import threading
import tracemalloc
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.base import files
from backend.base.errors import Damage, DamagedBlock, NotFound
from backend.base.lru import Counts
from backend.storage.block_store import BlockStore
from backend.storage.caches import FRAME_OVERHEAD_BYTES, CachedBlocks, unpacked_bytes_of
from backend.storage.layout import ENTRY_BYTES, Place, place_from
from tests.cases import each_of
from tests.effort import examples
from tests.storage.chains import (
    all_are_pending,
    append_blocks,
    block_file,
    flights,
    flip,
    make_chain,
    table_path,
    writer_for,
    writing,
)
from tests.submitting import run_together

pytestmark = pytest.mark.slow

RUN = 19


class CountingStore(BlockStore):
    """A store that remembers which runs were read from the disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.runs: list[list[int]] = []

    def frames(self, first: int, count: int) -> list[tuple[Place, bytes]]:
        frames = super().frames(first, count)
        self.runs.append(list(range(first, first + len(frames))))
        return frames

    def sizes(self) -> list[int]:
        """Returns how many bytes each block takes of a cache."""
        return [place.length + FRAME_OVERHEAD_BYTES for place in self.places(0, 20_000)]


def both_counts(cached: CachedBlocks) -> list[Counts]:
    """Returns the counts of the two caches of frames: last and random."""
    return list(cached.counts().values())[:2]


def assert_within_budget(cached: CachedBlocks) -> None:
    for cache, counts in zip((cached._last, cached._random), both_counts(cached), strict=True):
        assert 0 <= counts.bytes <= cache.capacity_bytes
        assert (counts.bytes == 0) == (counts.entries == 0)


def asked(cached: CachedBlocks, height: int) -> str:
    """The hash of a block, whatever cache it comes from; the budget holds afterwards."""
    block = cached.block(height)
    assert block.header.height == height
    assert_within_budget(cached)
    return block.hash


def lookups(cached: CachedBlocks) -> int:
    return sum(counts.hits + counts.misses for counts in both_counts(cached))


@pytest.fixture(scope="session")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blocks 0 to 40 of different sizes, in one file."""
    folder = tmp_path_factory.mktemp("forty")
    make_chain(folder, [7 * height % 40 for height in range(40)])
    return folder


# Any length of chain ------------------------------------------------------------------------------


def test_a_chain_that_is_cut_while_the_caches_look_at_it_keeps_nobody_waiting(
    forty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tip is there, and in the next moment nothing: it would be looked for again and again."""
    store, looks = BlockStore(forty), iter(range(10))

    def cut(first: int, count: int) -> list[Place]:
        next(looks)
        return []

    with closing(store):
        monkeypatch.setattr(store, "places", cut)
        with pytest.raises(NotFound):
            CachedBlocks(store, 10**6, RUN).block(40)


# What needs the disk ------------------------------------------------------------------------------


def test_adjacent_blocks_are_read_at_once(forty: Path) -> None:
    """Ahead of the block when blocks are asked for in order, and else around it."""
    store = CountingStore(forty)
    cached = CachedBlocks(store, 10**6, RUN)
    for height in range(41):
        asked(cached, height)
    assert store.runs == [[*range(19)], [*range(19, 38)], [38, 39, 40]]
    assert [(counts.hits, counts.misses) for counts in both_counts(cached)] == [(38, 3), (0, 0)]
    asked(CachedBlocks(store, 10**6, RUN), 20)
    assert store.runs[3:] == [[*range(11, 30)]]


@given(
    cache_bytes=st.integers(0, 50_000),
    run=st.integers(1, 25),
    tips=st.lists(st.integers(0, 40), max_size=3).map(sorted),
    jumps=st.lists(st.integers(0, 40), max_size=10),
)
@settings(max_examples=examples(60), deadline=None)
def test_the_newest_blocks_and_the_one_just_asked_for_need_no_disk(
    tmp_path_factory: pytest.TempPathFactory,
    forty: Path,
    cache_bytes: int,
    run: int,
    tips: list[int],
    jumps: list[int],
) -> None:
    """The chain grows to each of `tips` in turn, and is read in a row and by jumps at each."""
    whole, folder = CountingStore(forty), tmp_path_factory.mktemp("growing")
    hashes, sizes = [place.hash.hex() for place in whole.places(0, 41)], whole.sizes()
    block_file(folder).parent.mkdir()
    block_file(folder).symlink_to(block_file(forty))
    store = CountingStore(folder)
    cached = CachedBlocks(store, cache_bytes, run)
    with pytest.raises(NotFound):
        cached.block(0)
    for tip in tips:
        table_path(folder).write_bytes(table_path(forty).read_bytes()[: (tip + 1) * ENTRY_BYTES])
        newest = [h for h in range(tip + 1) if sum(sizes[h : tip + 1]) <= cache_bytes // 2]
        for height in [*newest, *range(tip + 1), *(jump % (tip + 1) for jump in jumps), 0]:
            assert asked(cached, height) == hashes[height]
            if height in newest or sizes[height] <= cache_bytes // 2:
                before = len(store.runs)
                asked(cached, height)
                assert len(store.runs) == before
        before = len(store.runs)
        for height in newest:
            asked(cached, height)
        assert len(store.runs) == before


def test_a_run_cut_short_by_large_blocks_still_has_the_block_asked_for(
    forty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.storage.block_store.MAX_RUN_BYTES", 1)
    cached = CachedBlocks(BlockStore(forty), 10**6, RUN)
    for height in (30, 31, 5, 40, 0):
        asked(cached, height)


# Memory -------------------------------------------------------------------------------------------


def chain_of_bodies(folder: Path, blocks: int, body_bytes: int) -> None:
    """A chain whose bodies are noise of a real block's size; storage does not look into them."""
    noise = random.Random(body_bytes)
    with writing(folder) as writer:
        for _ in range(blocks):
            content = replace(flights(0, 0), body=noise.randbytes(body_bytes))
            writer.append(writer.state.build(writer.state.timestamp, content))
        writer.commit()


@pytest.mark.parametrize(
    ("blocks", "body_bytes", "cache_bytes"),
    [(150, 14_000, 1_500_000), (600, 100, 10**7)],
)
def test_the_bytes_counted_are_the_bytes_taken(
    tmp_path: Path, blocks: int, body_bytes: int, cache_bytes: int
) -> None:
    chain_of_bodies(tmp_path, blocks, body_bytes)
    store = BlockStore(tmp_path)
    CachedBlocks(store, cache_bytes, RUN).block(0)  # what is made once is made
    cached = CachedBlocks(store, cache_bytes, RUN)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for height in range(blocks + 1):
            cached.block(height)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    counted = sum(counts.bytes for counts in both_counts(cached))
    assert counted > 0.7 * min(cache_bytes, blocks * body_bytes)
    assert abs(taken - counted) < 0.15 * counted


# What is ready ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cache_bytes", [0, 3_000, 10**6])
def test_what_is_ready_needs_no_disk_and_is_not_counted(tmp_path: Path, cache_bytes: int) -> None:
    sizes = [1, 0, 3, 0, 0, 2] * 8
    make_chain(tmp_path, sizes)
    owners = [height for height, size in enumerate(sizes, 1) for _ in range(size)]
    store = CountingStore(tmp_path)
    cached = CachedBlocks(store, cache_bytes, 5)
    assert not cached.has(3)
    random_heights = random.Random(3)
    for _ in range(15):
        cached.block(random_heights.randint(0, len(sizes)))
        counts, runs = both_counts(cached), len(store.runs)
        ready = {height for height in range(-1, 99) if cached.has(height)}
        assert len(ready) == sum(count.entries for count in counts)
        assert [cached.has_transaction(i) for i in range(len(owners) + 5)] == [
            *(height in ready for height in owners),
            *[False] * 5,
        ]
        for i, height in enumerate(owners):
            assert cached.where_transaction(i) == cached.where(height)
            assert cached.where(height) == (height, store.place(height).hash.hex())
        assert cached.where_transaction(len(owners)) is None
        assert (both_counts(cached), len(store.runs)) == (counts, runs)
        for height in ready:
            assert cached.cached_block(height) == cached.block(height)
        assert len(store.runs) == runs


def test_nothing_is_ready_while_somebody_else_changes_the_caches(forty: Path) -> None:
    store = BlockStore(forty)
    cached = CachedBlocks(store, 10**6, RUN)
    cached.block(5)
    with cached._lock:
        assert not cached.has(5)
    assert cached.has(5)


def test_a_block_that_takes_long_to_unpack_is_not_ready(
    forty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = BlockStore(forty)
    cached = CachedBlocks(store, 10**6, RUN)
    body_bytes = len(cached.block(5).body)
    monkeypatch.setattr("backend.storage.caches.MOST_READY_BYTES", body_bytes)
    assert cached.has(5)
    monkeypatch.setattr("backend.storage.caches.MOST_READY_BYTES", body_bytes - 1)
    assert not cached.has(5)


def test_of_a_block_that_was_checked_the_checksum_is_looked_at_again(forty: Path) -> None:
    store = BlockStore(forty)
    cached = CachedBlocks(store, 10**6, RUN)
    cached.cached_block(5)
    kept = cached._cache_of(5).peek(5)
    assert kept is not None
    assert kept.is_checked
    kept.frame = kept.frame[:-1] + bytes([kept.frame[-1] ^ 1])
    with pytest.raises(DamagedBlock, match="its checksum is wrong"):
        cached.cached_block(5)
    assert cached.cached_block(5).header.height == 5  # read again


def test_of_a_block_that_was_not_checked_more_than_the_checksum_is_looked_at(
    tmp_path: Path,
) -> None:
    make_chain(tmp_path, [1] * 3)
    table = table_path(tmp_path).read_bytes()
    other = Place(bytes(32), *place_of(table, 2)[1:]).packed()
    files.write_new(table_path(tmp_path), table[: 2 * ENTRY_BYTES] + other + table[-ENTRY_BYTES:])
    store = BlockStore(tmp_path)
    cached = CachedBlocks(store, 10**6, RUN)
    cached.cached_block(1)
    for _ in range(2):
        with pytest.raises(DamagedBlock, match="on record"):
            cached.cached_block(2)


def place_of(table: bytes, height: int) -> Place:
    place = place_from(table[height * ENTRY_BYTES : (height + 1) * ENTRY_BYTES])
    assert place is not None
    return place


# Threads, growth, damage --------------------------------------------------------------------------


def test_threads_get_the_right_blocks_while_the_chain_grows(tmp_path: Path) -> None:
    make_chain(tmp_path, [1] * 30)
    store = BlockStore(tmp_path)
    cached = CachedBlocks(store, 40_000, RUN)
    done, calls = threading.Event(), list[int]()

    def read(seed: int) -> None:
        heights, count = random.Random(seed), 0
        while not done.is_set() or count < 100:
            height = heights.randrange(store.height() + 1)
            for at in range(height, min(height + 4, store.height() + 1)):
                block = cached.block(at)
                count += 1
                assert block.header.height == at
                assert block.hash == store.place(at).hash.hex()
        calls.append(count)

    def grow() -> None:
        with writing(tmp_path, block_file_bytes=30_000) as writer, ExitStack() as stack:
            stack.callback(done.set)
            for _ in range(40):
                append_blocks(writer, [1, 0])

    run_together(5, lambda number: read(number) if number else grow())
    assert_within_budget(cached)
    assert lookups(cached) == sum(calls)
    assert min(cached._last._heights, default=cached._floor) >= cached._floor > 0
    assert sum(counts.evictions for counts in both_counts(cached)) > 0


def regrown(folder: Path, blocks_more: int) -> str:
    """Recovery drops a torn tip, and other blocks are mined; the hash of the block in its place."""
    writer = writer_for(folder, are_pending=all_are_pending)
    table = table_path(folder).read_bytes()
    tip = BlockStore(folder).tip()
    assert tip is not None
    os.truncate(block_file(folder), tip[1].end - 1)
    writer.acquire(wait=False)
    assert writer.state.height == tip[0] - 1
    blocks = append_blocks(writer, [2] + [0] * blocks_more, later_ms=50)
    writer.close()
    assert table_path(folder).read_bytes()[: len(table)] != table
    return blocks[0].hash


@pytest.mark.parametrize("cache_bytes", [0, 3_000, 10**6])
@pytest.mark.parametrize("more", [0, 1, 2, 30])
def test_a_chain_that_was_cut_and_grew_beyond_serves_no_stale_block(
    tmp_path: Path, cache_bytes: int, more: int
) -> None:
    make_chain(tmp_path, [1] * 25)
    store = BlockStore(tmp_path)
    cached = CachedBlocks(store, cache_bytes, RUN)
    old = [asked(cached, height) for height in range(26)]
    new = regrown(tmp_path, more)
    assert new != old[25]
    assert asked(cached, 25) == new
    for height in range(25 + more + 1):
        assert asked(cached, height) == store.place(height).hash.hex()


def test_what_was_read_while_the_chain_was_cut_is_not_kept(tmp_path: Path) -> None:
    make_chain(tmp_path, [1] * 25)
    new: list[str] = []

    class Cut(BlockStore):
        def frames(self, first: int, count: int) -> list[tuple[Place, bytes]]:
            frames = super().frames(first, count)
            if not new:
                new.append(regrown(tmp_path, 1))
                asked(cached, 26)  # by another thread, which notices
            return frames

    cached = CachedBlocks(Cut(tmp_path), 10**6, RUN)
    assert asked(cached, 25) not in new
    assert asked(cached, 25) == new[0]


@each_of("cache_bytes", [0, 4_000, 10**6])
def test_what_is_damaged_is_never_served_and_hides_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, cache_bytes: int
) -> None:
    """Neither a block nor an entry, not even that of the tip; and it is served once it is whole."""
    folder = tmp_path_factory.mktemp("damaged")
    make_chain(folder, [1] * 25)
    with closing(BlockStore(folder)) as store:
        places = store.places(0, 26)
    for damaged, path, at in [
        (12, block_file(folder), places[12].offset + 200),
        *((height, table_path(folder), ENTRY_BYTES * height + 3) for height in (0, 3, 24, 25)),
    ]:
        flip(path, at)
        with closing(BlockStore(folder)) as store:
            cached = CachedBlocks(store, cache_bytes, RUN)
            for height in [*range(26), *range(25, -1, -1)]:
                if height != damaged:
                    assert asked(cached, height) == places[height].hash.hex()
                    continue
                with pytest.raises(Damage, match=f"block {damaged} "):
                    cached.block(damaged)
            flip(path, at)
            assert asked(cached, damaged) == places[damaged].hash.hex()
        if cache_bytes == 10**6:  # to forget what is damaged is not to evict
            assert sum(counts.evictions for counts in both_counts(cached)) == 0


# Unpacked blocks ----------------------------------------------------------------------------------


def test_a_block_asked_for_again_is_unpacked_once(forty: Path) -> None:
    with closing(BlockStore(forty)) as store:
        cached = CachedBlocks(store, 10**6, 3, unpacked_bytes=10**6)
        first = cached.cached_block(5)
        assert cached.cached_block(5) is first
        assert cached.block(5) == first
        assert cached.block(5) is not first  # verified each time
        counts = cached.counts()["unpacked"]
        assert counts == Counts(1, 1, 0, 1, unpacked_bytes_of(first))
        assert counts.bytes > len(first.body) + len(first.header_bytes)


def test_nothing_is_kept_unpacked_without_room(forty: Path) -> None:
    with closing(BlockStore(forty)) as store:
        cached = CachedBlocks(store, 10**6, 3)
        assert cached.cached_block(5) is not cached.cached_block(5)
        assert cached.counts()["unpacked"].entries == 0
