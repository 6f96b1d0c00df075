"""Computes Merkle trees as in RFC 6962 section 2.1 (hashes as in RFC 9162), and their proofs.

A leaf hashes as SHA-256(0x00 || data), a node as SHA-256(0x01 || left || right), the empty tree as
SHA-256(""). A tree of n leaves splits at the largest power of two below n. Hashes are 32 raw bytes.

Verification returns nothing and raises ProofError: a forgotten `if` cannot pass a bad proof.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

EMPTY_ROOT = sha256(b"").digest()

RootOf = Callable[[int, int], bytes]  # the root over leaves from the first to the second, exclusive


class ProofError(ValueError):
    """The proof does not show what it claims."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of one leaf."""
    return sha256(b"\x00" + data).digest()


def leaf_hashes(many: Iterable[bytes]) -> list[bytes]:
    """Return the hash of each of many leaves."""
    return [sha256(b"\x00" + data).digest() for data in many]


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over `leaves` (leaf hashes, in order).

    Pairs are joined level by level; an odd node at the end moves up unchanged, which is the same
    tree as RFC 6962's recursive definition.
    """
    if not leaves:
        return EMPTY_ROOT
    level = list(leaves)
    while len(level) > 1:
        odd_end = level[len(level) & ~1 :]
        level = _joined(level) + odd_end
    return level[0]


def _joined(level: Sequence[bytes]) -> list[bytes]:
    """Return the hash of each pair of nodes; an odd one at the end is left out."""
    pairs = zip(level[::2], level[1::2], strict=False)
    return [sha256(b"\x01" + left + right).digest() for left, right in pairs]


def split(size: int) -> int:
    """Return the largest power of two below `size` (> 1)."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the audit path of leaf `index` (RFC 6962 section 2.1.1), from the leaf up.

    Raises IndexError if there is no such leaf.
    """
    return inclusion_path(index, len(leaves), lambda low, high: root(leaves[low:high]))


def inclusion_path(index: int, size: int, root_of: RootOf) -> list[bytes]:
    """Return the audit path of leaf `index` of `size`, where `root_of` knows roots of subtrees.

    Raises IndexError if there is no such leaf.
    """
    if not 0 <= index < size:
        raise IndexError(f"leaf {index} of a tree of {size}")
    path: list[bytes] = []
    low, high = 0, size
    while high - low > 1:
        middle = low + split(high - low)
        if index < middle:
            path.append(root_of(middle, high))
            high = middle
        else:
            path.append(root_of(low, middle))
            low = middle
    return path[::-1]


def range_path(first: int, stop: int, size: int, root_of: RootOf) -> list[bytes]:
    """Return the hashes that prove leaves `first` to `stop` (exclusive) of a tree of `size` leaves.

    Whoever has these leaves and hashes can compute the root: they are the largest subtrees outside
    of the range, from left to right. Between the leaves of the range no other leaf has room, and
    before leaf 0 and after leaf `size - 1` there is none, so the proof also shows what is missing.
    The range may be empty: then the only hash is the root. Raises IndexError if it does not fit.
    """
    if not 0 <= first <= stop <= size:
        raise IndexError(f"leaves {first} to {stop} of a tree of {size}")
    path: list[bytes] = []

    def visit(low: int, high: int) -> None:
        if stop <= low or high <= first or first == stop:
            path.append(root_of(low, high))
        elif high - low > 1:
            middle = low + split(high - low)
            visit(low, middle)
            visit(middle, high)

    if size:
        visit(0, size)
    return path


def _steps(node: int, last: int, siblings: Sequence[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Walk up from leaf `node` of a tree whose last leaf is `last`: (sibling is left, sibling).

    The walk of RFC 9162 section 2.1.4.2. Raises ProofError unless it ends at the root
    exactly when the siblings do.
    """
    for sibling in siblings:
        if last == 0:
            raise ProofError("the proof is too long")
        is_left = bool(node & 1) or node == last
        yield is_left, sibling
        while is_left and not node & 1 and node:
            node, last = node >> 1, last >> 1
        node, last = node >> 1, last >> 1
    if last != 0:
        raise ProofError("the proof is too short")


def consistency_path(old_size: int, size: int, root_of: RootOf) -> list[bytes]:
    """Return the proof that a tree of `old_size` leaves is a prefix of that of `size` leaves.

    It is that of RFC 6962, section 2.1.2. root_of: knows the subtrees of the larger tree. Raises
    ValueError unless 0 < old_size <= size.
    """
    if not 0 < old_size <= size:
        raise ValueError(f"no proof from size {old_size} to {size}")
    path: list[bytes] = []
    low, high, old, whole = 0, size, old_size, True
    while old != high - low:
        middle = low + split(high - low)
        if low + old <= middle:
            path.append(root_of(middle, high))
            high = middle
        else:
            path.append(root_of(low, middle))
            low, old, whole = middle, old - (middle - low), False
    if not whole:
        path.append(root_of(low, high))
    return path[::-1]


def verify_consistency(
    old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
) -> None:
    """Raise ProofError unless `proof` shows that the new tree starts with the old one.

    An empty old tree is a prefix of everything.
    """
    if not 0 <= old_size <= new_size:
        raise ProofError(f"a tree of {new_size} cannot extend one of {old_size}")
    if old_size in {0, new_size}:
        is_empty = old_size > 0 or old_root == EMPTY_ROOT
        is_same = old_size < new_size or old_root == new_root
        if proof or not (is_empty and is_same):
            raise ProofError("trees of these sizes need no proof, but the right roots")
        return
    is_whole_subtree = old_size & (old_size - 1) == 0
    steps = [old_root, *proof] if is_whole_subtree else list(proof)
    if not steps:
        raise ProofError("the proof is too short")
    shared = (old_size & -old_size).bit_length() - 1
    old_hash = new_hash = steps[0]
    for is_left, sibling in _steps((old_size - 1) >> shared, (new_size - 1) >> shared, steps[1:]):
        if is_left:
            old_hash, new_hash = node_hash(sibling, old_hash), node_hash(sibling, new_hash)
        else:
            new_hash = node_hash(new_hash, sibling)
    if old_hash != old_root or new_hash != new_root:
        raise ProofError("the proof leads to other roots")


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a growing tree: enough to add leaves and know the root in O(log n).

    size: leaves so far. peaks: roots of the perfect subtrees that make up the tree, from the left;
    their sizes are the binary digits of `size`.
    """

    size: int = 0
    peaks: tuple[bytes, ...] = ()

    def extended(self, data: bytes) -> "Frontier":
        """Return the frontier after one more leaf (its data, not its hash)."""
        peaks, size, peak = list(self.peaks), self.size, leaf_hash(data)
        while size & 1:
            peak = node_hash(peaks.pop(), peak)
            size >>= 1
        return Frontier(self.size + 1, (*peaks, peak))

    def root(self) -> bytes:
        if not self.peaks:
            return EMPTY_ROOT
        top = self.peaks[-1]
        for peak in self.peaks[-2::-1]:
            top = node_hash(peak, top)
        return top


def frontier_of(leaf_data: Iterable[bytes]) -> Frontier:
    """Return the frontier of the tree over `leaf_data`."""
    level = leaf_hashes(leaf_data)
    size, peaks = len(level), list[bytes]()
    while level:
        if len(level) & 1:
            peaks.append(level[-1])
        level = _joined(level)
    return Frontier(size, tuple(reversed(peaks)))
