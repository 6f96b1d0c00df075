"""The two caches in front of the block store, as in the study.

- *last* keeps the newest blocks, as many as fit its bytes.
- *random* keeps the neighbourhood of the block last asked for, among the older blocks. On a miss it
  reads a run of adjacent blocks at once: around the block, or ahead of it when blocks are asked for
  in order, so that in a scan it slides forward. What is farthest from the block last asked for goes
  first.

Both keep frames as they are on disk (compressed), so that a month of all US flights fits into each
10 MB, and both count what a frame really takes in memory. A frame is checked every time it is
used, so a scan verifies every block again, whether it came from the disk or from a cache.
"""

import threading
from dataclasses import dataclass, replace

from backend.chain.block import Block
from backend.errors import Damage, DamagedBlock
from backend.storage.block_store import BlockStore
from backend.storage.codec import verified_block

# Key, hash, tuple, frame object and dictionary slot of one block beside the frame's own bytes.
FRAME_OVERHEAD_BYTES = 300
PLACES_AT_ONCE = 1024

Kept = tuple[bytes, bytes]  # hash on record, frame


@dataclass(slots=True)
class CacheStatistics:
    """Counts since the process started; blocks and bytes are what is kept now."""

    name: str
    capacity_bytes: int
    hits: int = 0
    misses: int = 0
    evictions: int = 0
    blocks: int = 0
    bytes: int = 0


def kept_bytes(frame: bytes) -> int:
    """What keeping `frame` takes in memory."""
    return len(frame) + FRAME_OVERHEAD_BYTES


class _Cache:
    """Frames by height within a budget of bytes. Not thread-safe by itself."""

    def __init__(self, name: str, capacity_bytes: int) -> None:
        self.statistics = CacheStatistics(name, capacity_bytes)
        self._kept: dict[int, Kept] = {}

    def find(self, height: int) -> Kept | None:
        """The frame of a block, counted as a hit or a miss."""
        found = self._kept.get(height)
        if found is None:
            self.statistics.misses += 1
        else:
            self.statistics.hits += 1
        return found

    def put(self, height: int, kept: Kept) -> None:
        """Keep a frame; whatever does not fit is evicted afterwards by `shrink`."""
        if height not in self._kept:
            self._kept[height] = kept
            self.statistics.blocks += 1
            self.statistics.bytes += kept_bytes(kept[1])

    def drop(self, height: int) -> None:
        """Evict one block."""
        _, frame = self._kept.pop(height)
        self.statistics.blocks -= 1
        self.statistics.bytes -= kept_bytes(frame)
        self.statistics.evictions += 1

    def forget(self, height: int) -> None:
        """Drop one block, if it is kept; not counted as an eviction."""
        if height in self._kept:
            self.drop(height)
            self.statistics.evictions -= 1

    def drop_below(self, floor: int) -> None:
        """Evict every block below `floor`."""
        for height in [h for h in self._kept if h < floor]:
            self.drop(height)

    def clear(self) -> None:
        """Forget everything; not counted as evictions."""
        self._kept.clear()
        self.statistics.blocks = self.statistics.bytes = 0

    def shrink(self, centre: int) -> None:
        """Evict what is farthest from `centre` until the rest fits."""
        if self.statistics.bytes <= self.statistics.capacity_bytes:
            return
        for height in sorted(self._kept, key=lambda h: -abs(h - centre)):
            self.drop(height)
            if self.statistics.bytes <= self.statistics.capacity_bytes:
                return


class CachedBlocks:
    """Checked blocks by height, through the two caches.

    Safe for threads; the disk is read outside the lock, so a hit never waits for another's miss.
    """

    def __init__(self, store: BlockStore, cache_bytes: int, read_run_blocks: int) -> None:
        """cache_bytes: both caches together. read_run_blocks: adjacent blocks read on a miss."""
        self._store = store
        self._read_run_blocks = read_run_blocks
        self._lock = threading.Lock()
        self._last = _Cache("last", cache_bytes // 2)
        self._random = _Cache("random", cache_bytes - cache_bytes // 2)
        self._tip_height = -1
        self._tip_hash = b""
        self._floor = 0  # lowest block that belongs to the last cache
        self._asked = -2
        self._generation = 0  # counts how often everything was forgotten

    def statistics(self) -> list[CacheStatistics]:
        """The counts of both caches, as they are now."""
        with self._lock:
            return [replace(cache.statistics) for cache in (self._last, self._random)]

    def clear(self) -> None:
        """Empty both caches."""
        with self._lock:
            self._start_anew()

    def block(self, height: int) -> Block:
        """A checked block. Raises NotFound or DamagedBlock."""
        hash_on_record, frame = self._frame(height)
        try:
            return verified_block(frame, height, hash_on_record)
        except DamagedBlock:
            with self._lock:  # the disk may be put right; then it must be read again
                self._cache_of(height).forget(height)
            raise

    def _frame(self, height: int) -> Kept:
        with self._lock:
            self._follow_tip()
            in_order, self._asked = height == self._asked + 1, height
            found = self._cache_of(height).find(height)
            generation = self._generation
        if found is not None:
            return found
        run = self._read_run(height, in_order=in_order)
        with self._lock:
            if generation == self._generation:  # else the chain was cut while we read
                for at, kept in run.items():
                    self._cache_of(at).put(at, kept)
                self._last.shrink(self._tip_height)
                self._random.shrink(height)
        return run[height]

    def _read_run(self, height: int, *, in_order: bool) -> dict[int, Kept]:
        """Block `height` and its neighbours, or those ahead of it, from the disk."""
        keeps = self._cache_of(height).statistics.capacity_bytes > 0
        count = self._read_run_blocks if keeps else 1
        first = height if in_order else max(0, height - count // 2)
        try:
            frames = self._store.frames(first, count)
        except Damage:  # of a neighbour, perhaps; block `height` alone will tell
            frames = []
        if (
            not first <= height < first + len(frames)
        ):  # or large blocks, and the run ended before it came here
            first, frames = height, [self._store.frame(height)]
        return {first + i: (place.hash, frame) for i, (place, frame) in enumerate(frames)}

    def _cache_of(self, height: int) -> _Cache:
        return self._last if height >= self._floor else self._random

    def _follow_tip(self) -> None:
        """Move the border between the caches when the chain has grown; start anew if it was cut."""
        try:
            tip = self._store.tip()
        except Damage:  # of the tip's entry; whoever asks for the tip is told
            return
        height, tip_hash = (-1, b"") if tip is None else (tip[0], tip[1].hash)
        if (height, tip_hash) == (self._tip_height, self._tip_hash):
            return
        if height <= self._tip_height or not self._is_still_there():
            self._start_anew()
        floor = self._newest_that_fit(height)
        self._last.drop_below(floor)
        self._tip_height, self._tip_hash, self._floor = height, tip_hash, floor

    def _is_still_there(self) -> bool:
        """Whether the block that was the tip is still in the chain."""
        height = self._tip_height
        try:
            return height < 0 or self._store.place(height).hash == self._tip_hash
        except Damage:
            return False

    def _start_anew(self) -> None:
        self._last.clear()
        self._random.clear()
        self._generation += 1

    def _newest_that_fit(self, height: int) -> int:
        """The lowest of the newest blocks that fit into the last cache together."""
        left = self._last.statistics.capacity_bytes
        floor = height + 1
        while floor > 0:
            first = max(0, floor - PLACES_AT_ONCE)
            try:
                places = self._store.places(first, floor - first)
            except Damage:  # of an entry further down; whoever asks for that block is told
                return floor
            for place in reversed(places):
                left -= place.length + FRAME_OVERHEAD_BYTES
                if left < 0:
                    return floor
                floor -= 1
        return floor
