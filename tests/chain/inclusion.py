"""Whether a path leads from a leaf to a root, as `scripts/verify.py` sees it.

The service makes paths and checks none, so that script is the one place where we check them.
"""

from base64 import b64encode
from collections.abc import Sequence

import verify
from backend.chain.merkle import ProofError, consistency_path, root


def verify_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], top: bytes
) -> None:
    """Raise ProofError unless `proof` shows `leaf` (a leaf hash) at `index` of the tree `top`."""
    try:
        reached = verify.included(leaf, index, size, [b64encode(node).decode() for node in proof])
    except ValueError as error:
        raise ProofError(str(error)) from error
    if reached != top:
        raise ProofError("the proof leads to another root")


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Prove that the tree of the first leaf hashes is a prefix of the tree of all."""
    return consistency_path(old, len(leaves), lambda low, high: root(leaves[low:high]))
