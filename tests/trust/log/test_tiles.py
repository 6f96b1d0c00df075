"""Tiles and the tree behind them, against the tree computed from all leaves."""

from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.chain import merkle
from backend.trust.log import tiles
from backend.trust.log.tiles import ENTRIES, Tile
from backend.trust.log.tree import HistoryTree
from tests.cases import each_of
from tests.chain import inclusion
from tests.chain.inclusion import consistency_proof


class Blocks:
    """Hashes of blocks, as the block store gives them; counts how many it was asked for."""

    def __init__(self, count: int) -> None:
        self.entries = [sha256(b"%d" % height).digest() for height in range(count)]
        self.asked = 0

    def height(self) -> int:
        return len(self.entries) - 1

    def places(self, first: int, count: int) -> list[Any]:
        entries = self.entries[first : first + count]
        self.asked += len(entries)
        return [SimpleNamespace(hash=entry) for entry in entries]

    def place(self, height: int) -> Any:
        return self.places(height, 1)[0]


def tree_of(blocks: Any) -> HistoryTree:
    return HistoryTree(blocks)


SIZES = [1, 2, 3, 255, 256, 257, 511, 512, 700, 1000]
BLOCKS = Blocks(1000)
LEAVES = merkle.leaf_hashes(BLOCKS.entries)
TREE = tree_of(BLOCKS)


@each_of("size", SIZES)
def test_the_root_of_every_size_is_that_over_all_leaves(size: int) -> None:
    assert TREE.root(size) == merkle.root(LEAVES[:size])


def test_an_empty_log_has_the_root_of_nothing() -> None:
    assert tree_of(Blocks(0)).root(0) == merkle.EMPTY_ROOT


@given(st.integers(1, 1000), st.data())
def test_proofs_are_those_from_all_leaves(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = TREE.inclusion_proof(index, size)
    assert proof == merkle.inclusion_proof(LEAVES[:size], index)
    inclusion.verify_inclusion(LEAVES[index], index, size, proof, TREE.root(size))
    old = data.draw(st.integers(1, size))
    assert TREE.consistency_proof(old, size) == consistency_proof(LEAVES[:size], old)


@each_of("groups", [8, 1200, 2000])
def test_a_name_of_more_digits_than_any_tile_has_is_none(groups: int) -> None:
    assert tiles.parse(f"0/{groups * 'x999/'}999") is None


@each_of(("size", "rest"), [(1000, 1000 - 3 * 256), (100 * 256 + 9, 9)])
def test_whole_subtrees_are_hashed_once_and_not_looked_at_each(size: int, rest: int) -> None:
    blocks = Blocks(size)
    tree = tree_of(blocks)
    tree.root(size)
    blocks.asked = 0
    tree.root(size)
    assert blocks.asked < rest + 5


@each_of("size", [*SIZES, 2**10])
def test_what_is_known_of_the_chain_is_not_hashed_again(size: int) -> None:
    blocks = Blocks(size)
    tree = tree_of(blocks)
    tree.remember(merkle.frontier_of(blocks.entries))
    blocks.asked = 0
    assert tree.root(size) == merkle.root(merkle.leaf_hashes(blocks.entries))
    assert blocks.asked < 32


@each_of(("before", "kept", "after"), [(600, 400, 450), (600, 400, 520), (64, 9, 64)])
def test_a_chain_that_was_put_back_and_goes_on_otherwise_has_another_root(
    before: int, kept: int, after: int
) -> None:
    blocks = Blocks(before)
    tree = tree_of(blocks)
    tree.root(before)
    blocks.entries[kept:] = [sha256(b"other %d" % height).digest() for height in range(kept, after)]
    assert tree.root(after) == merkle.root(merkle.leaf_hashes(blocks.entries))


# --- tiles -----------------------------------------------------------------------------------


@each_of(
    ("tile", "name"),
    [
        (Tile(0, 0), "0/000"),
        (Tile(0, 1234067), "0/x001/x234/067"),  # the example of the specification
        (Tile(1, 1234067, 1), "1/x001/x234/067.p/1"),
        (Tile(ENTRIES, 67, 255), "entries/067.p/255"),
        (Tile(3, 1000), "3/x001/000"),
    ],
)
def test_a_tile_has_the_name_of_the_specification(tile: Tile, name: str) -> None:
    assert tile.name == name
    assert tiles.parse(name) == tile


@each_of(
    "name",
    [
        *(
            "",
            "0",
            "0/",
            "0/0",
            "0/00",
            "00/000",
            "a/000",
            "0/x000/000",
            "0/000.p/0",
            "0/000.p/256",
        ),
        *("0/000.p/01", "0/000/", "/0/000", "0/000/000", "0/x001", "64/000", "entries/0", "0/٠٠٠"),
    ],
)
def test_what_is_no_name_of_a_tile_is_none(name: str) -> None:
    assert tiles.parse(name) is None


@each_of("size", SIZES)
def test_exactly_the_tiles_of_a_log_are_there(size: int) -> None:
    for level in (ENTRIES, 0, 1):
        wide = size >> 8 * max(0, level)
        for index in range(5):
            for width in (1, 2, 255, 256):
                is_there = index * 256 + width <= wide
                assert tiles.is_there(Tile(level, index, width), size) == is_there


def test_tiles_hold_the_hashes_and_the_entries() -> None:
    assert tiles.content(TREE, Tile(0, 1)) == b"".join(LEAVES[256:512])
    assert tiles.content(TREE, Tile(0, 3, 7)) == b"".join(LEAVES[768:775])
    roots = [merkle.root(LEAVES[at : at + 256]) for at in (0, 256, 512)]
    assert tiles.content(TREE, Tile(1, 0, 3)) == b"".join(roots)
    entries = BLOCKS.entries[256:259]
    bundle = b"".join(b"\x00\x20" + entry for entry in entries)
    assert tiles.content(TREE, Tile(ENTRIES, 1, 3)) == bundle
