"""The hashes of the history tree, of any size that it had, without reading all of its entries.

The tree is that of RFC 6962 over the hashes of the blocks, genesis first. Whole subtrees of 256
leaves, of 256 of these, and so on, never change. They are hashed once, and remembered until the
chain turns out to be another one.
"""

from collections.abc import Callable
from threading import Lock

from backend.chain import merkle
from backend.storage.block_store import BlockStore

TILE_WIDTH = 256
LEAST_REMEMBERED = 16  # entries; smaller ranges are hashed again
_LEVEL_BITS = 8
_NOTHING = (-1, b"")


class HistoryTree:
    """The tree over the blocks in `store`. Safe for threads."""

    def __init__(self, store: BlockStore) -> None:
        self._store = store
        self._whole: dict[tuple[int, int], bytes] = {}  # roots of subtrees, by level and index
        self._ranges: dict[tuple[int, int], bytes] = {}  # other roots, by first entry and end
        self._newest = _NOTHING  # height and hash of the highest block that is in one of them
        self._lock = Lock()

    def size(self) -> int:
        return self._store.height() + 1

    def entries(self, first: int, count: int) -> list[bytes]:
        """Return the hashes of a run of blocks, 32 bytes each. Raises NotFound, Damage."""
        return [place.hash for place in self._store.places(first, count)]

    def hashes(self, level: int, first: int, count: int) -> list[bytes]:
        """Return hashes at a level of tiles: of leaves at 0, of subtrees of 256 leaves at 1, ….

        Raises NotFound, Damage.
        """
        with self._lock:
            self._forget_if_other()
            return self._hashes(level, first, count)

    def root(self, size: int) -> bytes:
        """Return the root of the tree when it had `size` entries. Raises NotFound, Damage."""
        with self._lock:
            self._forget_if_other()
            return self._range(0, size) if size else merkle.EMPTY_ROOT

    def inclusion_proof(self, index: int, size: int) -> list[bytes]:
        """Return the audit path of entry `index` in the tree of `size` entries, leaf first."""
        with self._lock:
            self._forget_if_other()
            return merkle.inclusion_path(index, size, self._range)

    def consistency_proof(self, old_size: int, size: int) -> list[bytes]:
        """Return the proof that the tree of `old_size` entries is a beginning of that of `size`.

        It is empty if there is nothing to prove, be it that the old tree is empty.
        """
        if old_size == 0:
            return []
        with self._lock:
            self._forget_if_other()
            return merkle.consistency_path(old_size, size, self._range)

    def _forget_if_other(self) -> None:
        """Forget everything unless the newest block that was used is still there."""
        height, known = self._newest
        if height >= 0 and (self._store.height() < height or self._hash(height) != known):
            self._whole.clear()
            self._ranges.clear()
            self._newest = _NOTHING

    def _hash(self, height: int) -> bytes:
        return self._store.place(height).hash

    def _hashes(self, level: int, first: int, count: int) -> list[bytes]:
        if level == 0:
            return merkle.leaf_hashes(self.entries(first, count))
        return [self._subtree(level, index) for index in range(first, first + count)]

    def _subtree(self, level: int, index: int) -> bytes:
        root = self._whole.get((level, index))
        if root is None:
            root = merkle.root(self._hashes(level - 1, index * TILE_WIDTH, TILE_WIDTH))
            self._whole[level, index] = root
            self._note(((index + 1) << _LEVEL_BITS * level) - 1)
        return root

    def _range(self, low: int, high: int) -> bytes:
        """Return the root over a range. Those that never change and take a while are remembered."""
        size = high - low
        if size < LEAST_REMEMBERED or size & (size - 1):
            return range_root(low, high, self._hashes)
        root = self._ranges.get((low, high))
        if root is None:
            root = self._ranges[low, high] = range_root(low, high, self._hashes)
            self._note(high - 1)
        return root

    def _note(self, height: int) -> None:
        """Note that something is remembered that depends on a block."""
        if height > self._newest[0]:
            self._newest = height, self._hash(height)


def range_root(low: int, high: int, hashes: Callable[[int, int, int], list[bytes]]) -> bytes:
    """Return the root over the entries from `low` to `high` (exclusive), a subtree of a tree.

    hashes: returns a run of hashes at a level of tiles, all of one tile: level, first, count.
    """
    size = high - low
    if size & (size - 1):  # the right edge: its left half is a whole subtree
        middle = low + merkle.split(size)
        return merkle.node_hash(range_root(low, middle, hashes), range_root(middle, high, hashes))
    level = (size.bit_length() - 1) // _LEVEL_BITS
    bits = _LEVEL_BITS * level
    return merkle.root(hashes(level, low >> bits, size >> bits))
