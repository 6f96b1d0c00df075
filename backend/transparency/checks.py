"""Checks the log's key and its newest checkpoint, for `verify`."""

from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backend.errors import Damage, NotFound
from backend.storage.block_store import BlockStore
from backend.transparency import (
    CHECKPOINT_NAME,
    KEY_NAME,
    SIGNED_ANEW,
    checkpoints,
    notes,
)
from backend.transparency.log_key import key_in
from backend.transparency.notes import NoteError, VerifierKey
from backend.transparency.tree import HistoryTree


def check_log(folder: Path, store: BlockStore) -> str:
    """Check what signs and is signed. Returns a message; raises Damage."""
    key, path = key_in(folder), folder / CHECKPOINT_NAME
    if key is None:
        if path.exists():
            raise Damage(f"{folder / KEY_NAME} is missing")
        return "no checkpoint of the log is signed yet"
    size = _checked_size(path, key.verifier, HistoryTree(store))
    return f"the checkpoint of {size} blocks is signed"


def _checked_size(path: Path, key: VerifierKey, tree: HistoryTree) -> int:
    """How many blocks a checkpoint names, all of which are there."""
    try:
        note = notes.parse(path.read_bytes())
        found = checkpoints.parse(note.text)
        signatures = [s for s in note.signatures if (s.name, s.key_id) == (key.name, key.key_id)]
        if not signatures:
            raise NoteError("this log has not signed it")
        Ed25519PublicKey.from_public_bytes(key.public).verify(
            signatures[0].signature, note.text.encode()
        )
        is_right = found.size <= tree.size() and tree.root(found.size) == found.root
    except (OSError, NoteError, InvalidSignature, NotFound) as error:
        reason = str(error) or "its signature is wrong"
        raise Damage(f"{path} is damaged or missing: {reason}; {SIGNED_ANEW}") from error
    if not is_right:
        raise Damage(f"{path} was signed for other blocks; {SIGNED_ANEW}")
    return found.size
