"""Keeps blocks as they were unpacked from their frames, so that this is not done again.

Requests for single transactions ask for the newest blocks, or for neighbours in a block. Without
this cache the service takes 1.6 to 1.8 times the processor time for `GET /transactions/ID`, and 2.2
times if each block is also verified again (rows of `scripts/bench`: transactions anywhere, in the
newest blocks). A block is known by its hash, so what is kept can never be another block's; like an
answer that is kept, it is not checked again.
"""

from dataclasses import astuple, dataclass

from backend.base.lru import LruCache
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
    """Return what keeping `block` takes in memory."""
    return len(block.body) + len(block.header_bytes) + BLOCK_OVERHEAD_BYTES


class DecodedBlockCache(LruCache[bytes, Block]):
    """Blocks by their hash (32 bytes) within `capacity_bytes`. Safe for threads."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes, unpacked_bytes)

    def statistics(self) -> CacheStatistics:
        return CacheStatistics("unpacked", self.capacity_bytes, *astuple(self.counts()))
