"""The hashes of the history tree, of any size that it had, without reading all of its entries.

The tree is that of RFC 6962 over the hashes of the blocks, genesis first. The roots of its whole
subtrees are hashed once, and remembered with the hash of the last block below them. That names all
blocks before it, so the root of another chain is never taken for this one's.
"""

from collections.abc import Callable, Sequence

from backend.chain import merkle
from backend.chain.merkle import Frontier
from backend.storage.block_store import BlockStore

TILE_WIDTH = 256
LEAST_REMEMBERED = 16  # entries; smaller ranges are hashed again
_LEVEL_BITS = 8
_ROOT = -1  # the level of a run that is the root over its entries


class HistoryTree:
    """The tree over the blocks in `store`. Safe for threads."""

    def __init__(self, store: BlockStore) -> None:
        self._store = store
        # Runs of hashes by their level, first entry, end, and the hash of the last block.
        self._runs: dict[tuple[int, int, int, bytes], Sequence[bytes]] = {}

    def size(self) -> int:
        return self._store.height() + 1

    def entries(self, first: int, count: int) -> list[bytes]:
        """Return the hashes of a run of blocks, 32 bytes each. Raises NotFound, Damage."""
        return [place.hash for place in self._store.places(first, count)]

    def hashes(self, level: int, first: int, count: int) -> Sequence[bytes]:
        """Return hashes at a level of tiles: of leaves at 0, of subtrees of 256 leaves at 1, ….

        Raises NotFound, Damage.
        """
        if level == 0:
            return merkle.leaf_hashes(self.entries(first, count))

        def compute() -> list[bytes]:
            return [self._subtree(level, index) for index in range(first, first + count)]

        bits = _LEVEL_BITS * level
        # To remember each alone would take a look at the table of heights for each.
        return self._remembered(level, first << bits, (first + count) << bits, compute)

    def root(self, size: int) -> bytes:
        """Return the root of the tree when it had `size` entries. Raises NotFound, Damage."""
        return self._range(0, size) if size else merkle.EMPTY_ROOT

    def remember(self, frontier: Frontier) -> None:
        """Take over what is known of the chain already: `frontier` is of all its blocks."""
        low = 0
        for peak in frontier.peaks:
            high = low + merkle.split(frontier.size - low + 1)
            self._runs[_ROOT, low, high, self._store.place(high - 1).hash] = [peak]
            low = high

    def inclusion_proof(self, index: int, size: int) -> list[bytes]:
        """Return the audit path of entry `index` in the tree of `size` entries, leaf first."""
        return merkle.inclusion_path(index, size, self._range)

    def consistency_proof(self, old_size: int, size: int) -> list[bytes]:
        """Return the proof that the tree of `old_size` entries is a beginning of that of `size`.

        It is empty if there is nothing to prove, be it that the old tree is empty.
        """
        return merkle.consistency_path(old_size, size, self._range) if old_size else []

    def _subtree(self, level: int, index: int) -> bytes:
        def compute() -> list[bytes]:
            return [merkle.root(self.hashes(level - 1, index * TILE_WIDTH, TILE_WIDTH))]

        bits = _LEVEL_BITS * level
        return self._remembered(_ROOT, index << bits, (index + 1) << bits, compute)[0]

    def _range(self, low: int, high: int) -> bytes:
        return range_root(low, high, self._whole)

    def _whole(self, low: int, high: int) -> bytes:
        """Return the root over a whole subtree; one that takes a while is remembered."""

        def compute() -> list[bytes]:
            return [whole_root(low, high, self.hashes)]

        is_remembered = high - low >= LEAST_REMEMBERED
        return (self._remembered(_ROOT, low, high, compute) if is_remembered else compute())[0]

    def _remembered(
        self, level: int, low: int, high: int, compute: Callable[[], Sequence[bytes]]
    ) -> Sequence[bytes]:
        key = (level, low, high, self._store.place(high - 1).hash)
        if (run := self._runs.get(key)) is None:
            run = self._runs[key] = compute()
        return run


def range_root(low: int, high: int, whole: Callable[[int, int], bytes]) -> bytes:
    """Return the root over the entries from `low` to `high` (exclusive), a subtree of a tree.

    whole: returns that over as many entries as a power of two.
    """
    size = high - low
    if size & (size - 1):  # the right edge: its left half is a whole subtree
        middle = low + merkle.split(size)
        return merkle.node_hash(range_root(low, middle, whole), range_root(middle, high, whole))
    return whole(low, high)


def whole_root(low: int, high: int, hashes: Callable[[int, int, int], Sequence[bytes]]) -> bytes:
    """Return the root over the entries from `low` to `high` (exclusive), a power of two of them.

    hashes: returns a run of hashes at a level of tiles, all of one tile: level, first, count.
    """
    level = ((high - low).bit_length() - 1) // _LEVEL_BITS
    bits = _LEVEL_BITS * level
    return merkle.root(hashes(level, low >> bits, (high - low) >> bits))
