"""Merkle trees against the literal definitions of RFC 6962, at every size that matters."""

from itertools import combinations, product

import pytest

from backend.chain import merkle
from backend.chain.merkle import Frontier, ProofError, frontier_of
from tests.cases import each_of
from tests.chain import inclusion, independent
from tests.chain.inclusion import consistency_proof

LARGEST = 70
DATA = [b"leaf %d" % i for i in range(LARGEST)]
LEAVES = [merkle.leaf_hash(data) for data in DATA]
ROOTS = [independent.tree_hash(DATA[:size]) for size in range(LARGEST + 1)]


@each_of("size", range(LARGEST + 1))
def test_the_root_is_that_of_the_recursive_definition(size: int) -> None:
    assert merkle.root(LEAVES[:size]) == ROOTS[size]


def test_the_frontier_has_the_root_of_the_tree_at_every_size() -> None:
    frontier = Frontier()
    for size in range(LARGEST + 1):
        assert frontier.size == size
        assert frontier.root() == ROOTS[size]
        assert len(frontier.peaks) == size.bit_count()
        assert frontier == frontier_of(DATA[:size])
        frontier = frontier.extended(b"leaf %d" % size)


@each_of("size", range(1, LARGEST + 1))
def test_every_leaf_of_every_size_has_a_proof_that_verifies(size: int) -> None:
    for index in range(size):
        proof = merkle.inclusion_proof(LEAVES[:size], index)
        inclusion.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])


CHECKS_OF_PREFIXES = (merkle.verify_consistency, inclusion.verify_extension)


@each_of("size", range(1, LARGEST + 1, 3))
def test_every_prefix_of_many_sizes_has_a_proof_that_verifies(size: int) -> None:
    for old in range(1, size + 1):
        proof = consistency_proof(LEAVES[:size], old)
        for check in CHECKS_OF_PREFIXES:
            check(old, size, ROOTS[old], ROOTS[size], proof)


def others(proof: list[bytes]) -> list[list[bytes]]:
    """Return proofs that are longer or shorter than a right one."""
    return [[*proof, ROOTS[3]], [ROOTS[3], *proof], *([proof[1:], proof[:-1]] if proof else [])]


@each_of("size", range(1, 18))
def test_a_proof_of_something_else_is_refused(size: int) -> None:
    for at in range(size):
        path = merkle.inclusion_proof(LEAVES[:size], at)
        places = [(index, path) for index in range(-2, size + 3) if index != at]
        for index, wrong in [*places, *((at, other) for other in others(path))]:
            with pytest.raises(ProofError):
                inclusion.verify_inclusion(LEAVES[at], index, size, wrong, ROOTS[size])
    for old, check in product(range(1, size + 1), CHECKS_OF_PREFIXES):
        path = consistency_proof(LEAVES[:size], old)
        sizes = [(other, old, path) for other in range(-1, size + 2) if other != old]
        roots = [(old, other, path) for other in range(size + 1) if other != old]
        for first, root, wrong in [*sizes, *roots, *((old, old, other) for other in others(path))]:
            with pytest.raises(ProofError):
                check(first, size, ROOTS[root], ROOTS[size], wrong)


@each_of("size", range(1, 18))
def test_leaves_that_are_in_no_tree_are_not_shown_beside_others(size: int) -> None:
    """Whoever shows a part of a block's sums could add one of their own."""
    texts = [data.decode() for data in DATA[:size]]
    for first, stop in combinations(range(size + 1), 2):
        path = merkle.range_path(first, stop, size, lambda a, b: merkle.root(LEAVES[a:b]))
        shown = texts[first:stop]
        inclusion.verify_range(first, shown, size, path, ROOTS[size])
        more = [*shown, "x"]
        for start, wrong, beside in (
            *((first, more, path), (first - 1, more, path)),
            *((first, shown, other) for other in others(path)),
        ):
            with pytest.raises(ProofError):
                inclusion.verify_range(start, wrong, size, beside, ROOTS[size])


@each_of(("size", "index"), [(0, 0), (1, 1), (5, 5), (5, -1)])
def test_there_is_no_proof_for_a_leaf_that_is_not_there(size: int, index: int) -> None:
    with pytest.raises(IndexError, match=f"leaf {index} of a tree of {size}"):
        merkle.inclusion_proof(LEAVES[:size], index)


@each_of(("old", "new"), [(0, 0), (0, 5), (6, 5), (-1, 5)])
def test_there_is_no_proof_for_a_prefix_that_is_none(old: int, new: int) -> None:
    with pytest.raises(ValueError, match=f"no proof from size {old} to {new}"):
        consistency_proof(LEAVES[:new], old)


def test_an_empty_tree_is_a_prefix_of_every_other() -> None:
    for size in range(LARGEST + 1):
        merkle.verify_consistency(0, size, ROOTS[0], ROOTS[size], [])
        with pytest.raises(ProofError):
            merkle.verify_consistency(0, size, ROOTS[1], ROOTS[size], [])
        with pytest.raises(ProofError):
            merkle.verify_consistency(0, size, ROOTS[0], ROOTS[size], [ROOTS[0]])
