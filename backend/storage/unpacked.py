"""Blocks kept as they were unpacked from their frames: bounded in bytes, the least used go first.

Unpacking takes as long as everything else that an answer about one transaction needs, and those
about the newest blocks, or about neighbours in a block, come together. A block is known by its
hash, so what is kept can never be another block's; like an answer that is kept, it is not checked
again.
"""

from dataclasses import dataclass, replace
from threading import Lock

from backend.chain.block import Block

# The hash, the header with its twelve values, objects and the slot in the dictionary.
BLOCK_OVERHEAD_BYTES = 2000


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


def unpacked_bytes(block: Block) -> int:
    """What keeping `block` takes in memory."""
    return len(block.body) + len(block.header_bytes) + BLOCK_OVERHEAD_BYTES


class UnpackedBlocks:
    """Blocks by their hash (32 bytes) within `capacity_bytes`. Safe for threads."""

    def __init__(self, capacity_bytes: int) -> None:
        self._statistics = CacheStatistics("unpacked", capacity_bytes)
        self._kept: dict[bytes, Block] = {}  # in the order of use
        self._lock = Lock()

    def statistics(self) -> CacheStatistics:
        """The counts as they are now."""
        with self._lock:
            return replace(self._statistics)

    def find(self, block_hash: bytes) -> Block | None:
        """The block with this hash, if it is kept."""
        with self._lock:
            found = self._kept.pop(block_hash, None)
            if found is None:
                self._statistics.misses += 1
            else:
                self._kept[block_hash] = found
                self._statistics.hits += 1
            return found

    def keep(self, block_hash: bytes, block: Block) -> None:
        """Keep a block, and let others go for it."""
        counts, size = self._statistics, unpacked_bytes(block)
        with self._lock:
            if block_hash in self._kept or size > counts.capacity_bytes:
                return
            while counts.bytes + size > counts.capacity_bytes:
                oldest = self._kept.pop(next(iter(self._kept)))
                counts.bytes -= unpacked_bytes(oldest)
                counts.evictions += 1
            self._kept[block_hash] = block
            counts.bytes += size
            counts.blocks = len(self._kept)

    def clear(self) -> None:
        """Forget everything; not counted as evictions."""
        with self._lock:
            self._kept.clear()
            self._statistics.blocks = self._statistics.bytes = 0
