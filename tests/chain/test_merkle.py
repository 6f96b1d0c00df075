"""Merkle trees against the literal definitions of RFC 6962, at every size that matters."""

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


@each_of("size", range(1, LARGEST + 1, 3))
def test_every_prefix_of_many_sizes_has_a_proof_that_verifies(size: int) -> None:
    for old in range(1, size + 1):
        proof = consistency_proof(LEAVES[:size], old)
        merkle.verify_consistency(old, size, ROOTS[old], ROOTS[size], proof)


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
