"""Checks the log's key and its newest checkpoint, for `verify`."""

from pathlib import Path

from backend.errors import Damage, NotFound
from backend.storage.block_store import BlockStore
from backend.transparency import (
    CHECKPOINT_NAME,
    KEY_NAME,
    SIGNED_ANEW,
    checkpoints,
)
from backend.transparency.notes import NoteError, VerifierKey
from backend.transparency.secret_keys import key_in
from backend.transparency.successions import successions_in
from backend.transparency.tree import HistoryTree
from backend.transparency.verifying import signed_at
from backend.words import counted


def check_log(folder: Path, store: BlockStore) -> str:
    """Check what signs and is signed. Returns a message; raises Damage."""
    successions_in(folder)
    key, path = key_in(folder), folder / CHECKPOINT_NAME
    if key is None:
        if path.exists():
            raise Damage(f"{folder / KEY_NAME} is missing")
        return "no checkpoint of the log is signed yet"
    size = _checked_size(path, key.verifier, HistoryTree(store))
    return f"the checkpoint of {counted(size, 'block')} is signed"


def _checked_size(path: Path, key: VerifierKey, tree: HistoryTree) -> int:
    """How many blocks a checkpoint names, all of which are there."""
    try:
        note, found = checkpoints.in_note(path.read_bytes())
        if signed_at(note, key) is None:
            raise NoteError("this log has not signed it")
        is_right = found.size <= tree.size() and tree.root(found.size) == found.root
    except (OSError, NoteError, NotFound) as error:
        raise Damage(f"{path} is damaged or missing: {error}; {SIGNED_ANEW}") from error
    if not is_right:
        raise Damage(
            f"{path} was signed for other blocks: they were changed or put back after that; "
            "compare them with a backup before you start the service, which would sign them"
        )
    return found.size
