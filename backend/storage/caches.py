"""Keeps blocks in two caches in front of the block store, as the study did.

- *last* keeps the newest blocks, as many as fit its bytes.
- *random* keeps the neighbourhood of the block last asked for, among the older blocks. On a miss it
  reads a run of adjacent blocks at once: around the block, or ahead of it when blocks are asked for
  in order, so that in a scan it slides forward. What is farthest from the block last asked for goes
  first.

Both keep frames as they are on disk (compressed), so that a month of all US flights fits into each
10 MB, and both count what a frame really takes in memory. `CachedBlocks.block` checks a frame every
time, so a scan verifies every block again, whether it came from the disk or from a cache;
`cached_block` verifies it once and then looks at its checksum alone, when it is unpacked again.

A third cache keeps blocks for `cached_block` as they were unpacked, by their hashes, so that what
is kept can never be another block's. Requests for single transactions ask for the newest blocks, or
for neighbours in a block. Without this cache the service takes 1.6 to 1.8 times the processor time
for `GET /transactions/ID`, and 2.2 times if each block is also verified again (rows of
`scripts/bench`: transactions anywhere, in the newest blocks).

The first two also tell, without the disk, which of their blocks holds a transaction. So whoever
must not wait can know beforehand that a block is in memory, from `CachedBlocks.has`.
"""

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from backend.base.errors import Damage, DamagedBlock
from backend.base.lru import Counts, LruCache
from backend.chain.block import Block
from backend.storage.block_store import BlockStore
from backend.storage.codec import block_again, stated_body_bytes, verified_block
from backend.storage.damage_notes import DamageNotes
from backend.storage.emulated import EmulatedDisk
from backend.storage.layout import Place
from backend.storage.scan_costs import EMULATED, FILE, Costs

# Key, hash, ids, tuple, frame object, slots in dictionary and list of one block beside the frame's
# own bytes.
FRAME_OVERHEAD_BYTES = 300
# The same of an unpacked block: hash, header with its twelve values, objects, slot in dictionary.
BLOCK_OVERHEAD_BYTES = 2000
PLACES_AT_ONCE = 1024
RECENT_S = 0.02  # how old the tip may be that an answer goes by; a look costs as much as an answer
MOST_READY_BYTES = 256 * 1024  # of a body; one of 1000 usual flights has 40 KB


@dataclass(slots=True)
class CachedFrame:
    """A frame, its block's hash on record, the ids of its first transaction and after its last.

    is_checked: whether it has been verified.
    """

    hash: bytes
    frame: bytes
    first_transaction: int
    next_transaction: int
    is_checked: bool = False


Open = Callable[[bytes, int, bytes], Block]  # frame, height, hash on record


class Where(NamedTuple):
    """A block: its height and hash on record (hexadecimal)."""

    height: int
    hash: str


def kept_bytes(frame: bytes) -> int:
    """Return what keeping `frame` takes in memory."""
    return len(frame) + FRAME_OVERHEAD_BYTES


def unpacked_bytes_of(block: Block) -> int:
    """Return what keeping an unpacked block takes in memory."""
    return len(block.body) + len(block.header_bytes) + BLOCK_OVERHEAD_BYTES


class _Cache:
    """Frames by height within a budget of bytes. It is not safe for threads by itself."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.counts = Counts()
        self._kept: dict[int, CachedFrame] = {}
        self._heights: list[int] = []  # of those, in order
        self._first_transactions: list[int] = []  # of each of them

    def peek(self, height: int) -> CachedFrame | None:
        """Return the frame of a block, without counting."""
        return self._kept.get(height)

    def holder(self, transaction_id: int) -> int | None:
        """Return the height of the block that holds a transaction, without counting."""
        at = bisect_right(self._first_transactions, transaction_id)
        if at == 0:
            return None
        height = self._heights[at - 1]
        return height if transaction_id < self._kept[height].next_transaction else None

    def find(self, height: int) -> CachedFrame | None:
        """Return the frame of a block, counted as a hit or a miss."""
        frame = self._kept.get(height)
        if frame is None:
            self.counts.misses += 1
        else:
            self.counts.hits += 1
        return frame

    def put(self, height: int, kept: CachedFrame) -> None:
        """Keep a frame; whatever does not fit is evicted afterwards by `shrink`."""
        if height not in self._kept:
            self._kept[height] = kept
            at = bisect_left(self._heights, height)
            self._heights.insert(at, height)
            self._first_transactions.insert(at, kept.first_transaction)
            self.counts.entries += 1
            self.counts.bytes += kept_bytes(kept.frame)

    def drop(self, height: int) -> None:
        kept = self._kept.pop(height)
        at = bisect_left(self._heights, height)
        del self._heights[at], self._first_transactions[at]
        self.counts.entries -= 1
        self.counts.bytes -= kept_bytes(kept.frame)
        self.counts.evictions += 1

    def forget(self, height: int) -> None:
        """Drop one block, if it is kept; not counted as an eviction."""
        if height in self._kept:
            self.drop(height)
            self.counts.evictions -= 1

    def drop_below(self, floor: int) -> None:
        for height in self._heights[: bisect_left(self._heights, floor)]:
            self.drop(height)

    def clear(self) -> None:
        """Forget everything; not counted as evictions."""
        self._kept.clear()
        self._heights.clear()
        self._first_transactions.clear()
        self.counts.entries = self.counts.bytes = 0

    def shrink(self, centre: int) -> None:
        """Evict what is farthest from `centre` until the rest fits."""
        while self.counts.bytes > self.capacity_bytes:
            lowest, highest = self._heights[0], self._heights[-1]
            self.drop(lowest if centre - lowest > highest - centre else highest)


def _kept(place: Place, frame: bytes) -> CachedFrame:
    return CachedFrame(place.hash, frame, place.first_transaction, place.next_transaction)


class CachedBlocks:
    """Checked blocks by height, through the two caches.

    Safe for threads; the disk is read outside the lock, so a hit never waits for another's miss.
    """

    def __init__(
        self,
        store: BlockStore,
        cache_bytes: int,
        read_run_blocks: int,
        unpacked_bytes: int = 0,
        disk: EmulatedDisk | None = None,
        notes: DamageNotes | None = None,
    ) -> None:
        """Read blocks from `store`.

        cache_bytes: what both caches may take together. read_run_blocks: how many adjacent blocks
        are read on a miss. unpacked_bytes: what the blocks may take that `cached_block` keeps
        unpacked beside the caches. disk: lets every read take longer. notes: take blocks that are
        damaged.
        """
        self._store = store
        self._notes = notes
        self._disk = disk
        self._read_run_blocks = read_run_blocks
        self._lock = threading.Lock()
        self._last = _Cache(cache_bytes // 2)
        self._random = _Cache(cache_bytes - cache_bytes // 2)
        self._unpacked = LruCache[bytes, Block](unpacked_bytes, unpacked_bytes_of)
        self._tip_height = -1
        self._tip_hash = b""
        self._floor = 0  # lowest block that belongs to the last cache
        self._asked = -2
        self._generation = 0  # counts how often everything was forgotten
        self._recent_until = 0.0
        # Whoever reads many blocks calls this before each, so that others can go first.
        self.yield_to_short_requests: Callable[[], None] = lambda: None

    def counts(self) -> dict[str, Counts]:
        """Return the counts of each cache, as they are now, by its name."""
        with self._lock:
            last, random = replace(self._last.counts), replace(self._random.counts)
        return {"last": last, "random": random, "unpacked": self._unpacked.counts()}

    def has(self, height: int) -> bool:
        """Return whether a block can be had without waiting for the disk or for anybody.

        The answer is False, too, for a block that is so large that unpacking it takes long, and
        while the caches do not know of the newest block. Nothing is counted.
        """
        return self._is_ready(lambda: height)

    def has_transaction(self, transaction_id: int) -> bool:
        """Return whether the block that holds a transaction is ready."""
        return self._is_ready(lambda: self._holder(transaction_id))

    def _is_ready(self, find_height: Callable[[], int | None]) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not self._is_recent() and self._store.height() != self._tip_height:
                return False
            height = find_height()
            kept = None if height is None else self._cache_of(height).peek(height)
            return kept is not None and stated_body_bytes(kept.frame) <= MOST_READY_BYTES
        finally:
            self._lock.release()

    def _holder(self, transaction_id: int) -> int | None:
        height = self._last.holder(transaction_id)
        return self._random.holder(transaction_id) if height is None else height

    def where(self, height: int) -> Where:
        """Return height and hash of a block without reading it, as of at most `RECENT_S` ago.

        Raises NotFound or Damage.
        """
        with self._lock:
            if not self._is_recent():
                self._follow_tip()
            kept = self._cache_of(height).peek(height)
        hash_on_record = self._store.place(height).hash if kept is None else kept.hash
        return Where(height, hash_on_record.hex())

    def where_transaction(self, transaction_id: int) -> Where | None:
        """Return height and hash of the block that holds a transaction, or None if none does.

        They are as of at most `RECENT_S` ago, and no block is read. Raises Damage.
        """
        with self._lock:
            if not self._is_recent():
                self._follow_tip()
            height = self._holder(transaction_id)
            kept = None if height is None else self._cache_of(height).peek(height)
            if height is not None and kept is not None:
                return Where(height, kept.hash.hex())
        holder = self._store.place_of_transaction(transaction_id)
        return None if holder is None else Where(holder[0], holder[1].hash.hex())

    def _is_recent(self) -> bool:
        """Return whether the newest block was looked for a moment ago, as a look takes time."""
        return time.monotonic() < self._recent_until

    def block(self, height: int, costs: Costs | None = None) -> Block:
        """Return a checked block. costs: its costs are added there.

        Raises NotFound or DamagedBlock.
        """
        costs = Costs() if costs is None else costs
        return self._opened(
            height, self._frame(height, costs), partial(verified_block, costs=costs)
        )

    def cached_block(self, height: int) -> Block:
        """Return a block as it was at most `RECENT_S` ago, checked when it was first used.

        Raises NotFound or DamagedBlock.
        """
        kept = self._frame(height, None, is_recent_enough=True)
        block = self._unpacked.find(kept.hash)
        if block is None:
            opened = block_again if kept.is_checked else verified_block
            block = self._opened(height, kept, opened)
            self._unpacked.keep(kept.hash, block)
        return block

    def _opened(self, height: int, kept: CachedFrame, opened: Open) -> Block:
        try:
            block = opened(kept.frame, height, kept.hash)
        except DamagedBlock as error:
            with self._lock:  # the disk may be repaired; then it must be read again
                self._cache_of(height).forget(height)
            self._note(error)
            raise
        if not kept.is_checked:  # it has just come from the disk
            kept.is_checked = True
            if self._notes is not None:
                self._notes.read_well(height)
        return block

    def _note(self, error: DamagedBlock) -> None:
        if self._notes is not None:
            self._notes.met(error)

    def _frame(
        self, height: int, costs: Costs | None, *, is_recent_enough: bool = False
    ) -> CachedFrame:
        with self._lock:
            if not (is_recent_enough and self._is_recent()):
                self._follow_tip()
            in_order, self._asked = height == self._asked + 1, height
            is_in_last = height >= self._floor
            cached = self._cache_of(height).find(height)
            generation = self._generation
        if cached is not None:
            if costs is not None:
                costs.last_blocks += is_in_last
                costs.random_blocks += not is_in_last
            return cached
        run = self._read_run(height, Costs() if costs is None else costs, in_order=in_order)
        with self._lock:
            if generation == self._generation:  # else the chain was cut while we read
                for at, kept in run.items():
                    self._cache_of(at).put(at, kept)
                self._last.shrink(self._tip_height)
                self._random.shrink(height)
        return run[height]

    def _read_run(self, height: int, costs: Costs, *, in_order: bool) -> dict[int, CachedFrame]:
        """Return block `height` and its neighbours, or those ahead of it, from the disk."""
        start_s = time.perf_counter()
        try:
            first, frames = self._run(height, in_order=in_order)
        except DamagedBlock as error:
            self._note(error)
            raise
        read_s = costs.spend(FILE, start_s)
        costs.read_blocks += len(frames)
        costs.refills += 1
        if self._disk is not None:
            self._disk.wait(len(frames), start_s)
            costs.spend(EMULATED, read_s)
        return {first + i: _kept(*place_and_frame) for i, place_and_frame in enumerate(frames)}

    def _run(self, height: int, *, in_order: bool) -> tuple[int, list[tuple[Place, bytes]]]:
        """Return the height of the first block that is read, and the frames from there on."""
        keeps = self._cache_of(height).capacity_bytes > 0
        count = self._read_run_blocks if keeps else 1
        first = height if in_order else max(0, height - count // 2)
        try:
            frames = self._store.frames(first, count)
        except Damage:  # of a neighbour, perhaps; block `height` alone will tell
            frames = []
        # Large blocks may end a run before it has come here.
        if not first <= height < first + len(frames):
            first, frames = height, [self._store.frame(height)]
        return first, frames

    def _cache_of(self, height: int) -> _Cache:
        return self._last if height >= self._floor else self._random

    def _follow_tip(self) -> None:
        """Move the border between the caches when the chain has grown; forget all if it was cut."""
        try:
            tip = self._store.tip()
        except Damage:  # of the tip's entry; whoever asks for the tip is told
            return
        self._recent_until = time.monotonic() + RECENT_S
        height, tip_hash = (-1, b"") if tip is None else (tip[0], tip[1].hash)
        if (height, tip_hash) == (self._tip_height, self._tip_hash):
            return
        if height <= self._tip_height or not self._is_still_there():
            self._forget_all()
        floor = self._newest_that_fit(height)
        self._last.drop_below(floor)
        self._tip_height, self._tip_hash, self._floor = height, tip_hash, floor

    def _is_still_there(self) -> bool:
        """Return whether the block that was the tip is still in the chain."""
        height = self._tip_height
        try:
            return height < 0 or self._store.place(height).hash == self._tip_hash
        except Damage:
            return False

    def _forget_all(self) -> None:
        self._last.clear()
        self._random.clear()
        self._unpacked.clear()
        self._generation += 1

    def _newest_that_fit(self, height: int) -> int:
        """Return the lowest of the newest blocks that fit into the last cache together."""
        left = self._last.capacity_bytes
        floor = height + 1
        while floor > 0:
            first = max(0, floor - PLACES_AT_ONCE)
            places: list[Place] = []
            with suppress(Damage):  # of an entry further down; whoever asks for that block is told
                places = self._store.places(first, floor - first)
            if not places:  # or the chain was cut in this moment
                return floor
            for place in reversed(places):
                left -= place.length + FRAME_OVERHEAD_BYTES
                if left < 0:
                    return floor
                floor -= 1
        return floor
