"""Whether a path leads from a leaf, or an older root, to a root, as `scripts/verify.py` sees it."""

from base64 import b64encode
from collections.abc import Callable, Sequence

import verify
from backend.chain.merkle import ProofError, consistency_path, root


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], top: bytes
) -> None:
    """Raise ProofError unless `proof` shows `leaf` (a leaf hash) at `index` of the tree `top`."""
    _require(top, lambda: verify.included(leaf, index, size, written(proof)))


def verify_extension(
    old: int, size: int, old_root: bytes, top: bytes, proof: Sequence[bytes]
) -> None:
    """Do what `merkle.verify_consistency` does."""
    _require(top, lambda: verify.extended(old, size, old_root, written(proof)))


def verify_range(
    first: int, data: list[str], size: int, proof: Sequence[bytes], top: bytes
) -> None:
    """Raise ProofError unless `proof` shows leaves with this data from `first` on."""
    _require(top, lambda: verify.spanned(first, data, size, written(proof)))


def written(proof: Sequence[bytes]) -> list[str]:
    return [b64encode(node).decode() for node in proof]


def _require(top: bytes, reached: Callable[[], bytes]) -> None:
    try:
        is_right = reached() == top
    except (ValueError, IndexError) as error:  # which `verify.main` takes for a refusal
        raise ProofError(str(error)) from error
    if not is_right:
        raise ProofError("the proof leads to another root")


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Prove that the tree of the first leaf hashes is a prefix of the tree of all."""
    return consistency_path(old, len(leaves), lambda low, high: root(leaves[low:high]))
