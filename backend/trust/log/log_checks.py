"""Checks what the log of a chain has signed, and whether its files belong to this chain.

The log's key is named after block 0. So the key of another ledger's log is known by its name, and
a checkpoint that a key of this log has signed says how many blocks there were, and which.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from backend.base import files
from backend.base.errors import Damage, NotFound
from backend.base.words import COMMAND, counted
from backend.storage.block_store import BlockStore
from backend.storage.genesis import genesis_in
from backend.storage.receipt_store import blocks_to_come
from backend.trust.log import CHECKPOINT_NAME, KEY_NAME, SIGNED_ANEW, VERIFIER_NAME, checkpoints
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import NoteError, VerifierKey, is_signed, parse_key, signed_at
from backend.trust.log.secret_keys import key_in
from backend.trust.log.successions import SUCCESSIONS_NAME, checked_successions, keys_named
from backend.trust.log.tree import HistoryTree

LOG_FILES = "log.key, log.vkey, log.successions, checkpoint and cosigned"
GO_ON = f"`{COMMAND} accept-loss`"


def check_log(folder: Path, store: BlockStore, tree: HistoryTree | None = None) -> str:
    """Check what signs and is signed. Returns a message; raises Damage.

    tree: of the chain, if one is kept, which is faster.
    """
    tree = tree or HistoryTree(store)
    if problem := foreign_log(folder):
        raise Damage(problem)
    key, path = key_in(folder), folder / CHECKPOINT_NAME
    checked_successions(folder, key)
    if key is None:
        if path.exists():
            raise Damage(f"{folder / KEY_NAME} is missing")
        return "no checkpoint of the log is signed yet"
    size = _checked_size(path, key.verifier)
    if problem := lost_since_signed(folder, tree):
        raise Damage(problem)
    return f"the checkpoint of {counted(size, 'block')} is signed"


def _checked_size(path: Path, key: VerifierKey) -> int:
    """Return how many blocks a checkpoint names, which must be signed. Raises Damage."""
    try:
        note, signed = checkpoints.in_note(path.read_bytes())
        if signed_at(note, key) is None:
            raise NoteError("this log has not signed it")
    except OSError as error:
        raise Damage(f"cannot read {files.reason_of(error, path, SIGNED_ANEW)}") from error
    except NoteError as error:
        raise Damage(f"{path} is damaged: {error}; {SIGNED_ANEW}") from error
    return signed.size


def foreign_log(folder: Path) -> str:
    """Say which file of the log belongs to another ledger than the blocks; "" if none does."""
    if not (genesis := genesis_in(folder)):
        return ""
    for name, key in _key_in_files(folder):
        if not checkpoints.is_origin_of(key.name, genesis):
            return (
                f"{folder / name} belongs to the log {key.name}, but {folder / 'blocks'} to the "
                f"log {checkpoints.origin_of(genesis)}: one of them is another ledger's, and "
                "nothing is sealed or signed; put back what belongs here; or, if the blocks are "
                f"right, move {LOG_FILES} away: a new key is then made, and everybody who relies "
                "on the old one must be told"
            )
    return ""


def _key_in_files(folder: Path) -> Iterator[tuple[str, VerifierKey]]:
    """Yield the log's key, and the name of its file: the public one if the other has none."""
    with suppress(Damage):
        key = key_in(folder, has_public=False)
        if key is not None:
            yield KEY_NAME, key.verifier
            return
    with suppress(OSError, NoteError):
        yield VERIFIER_NAME, parse_key((folder / VERIFIER_NAME).read_text("utf-8", "replace"))


def lost_since_signed(folder: Path, tree: HistoryTree) -> str:
    """Say which blocks this log has signed and the chain lacks; "" if there are none.

    A checkpoint that no key of this log has signed says nothing.
    """
    signed = signed_by_us(folder)
    if signed is None:
        return ""
    path = folder / CHECKPOINT_NAME
    size = tree.size()
    if signed.size > size:
        return lost_blocks(folder, size, f"{path}, which this log has signed, has {signed.size}")
    with suppress(NotFound):
        if tree.root(signed.size) != signed.root:
            return (
                f"{path} was signed for other blocks than those in {folder / 'blocks'}, which were "
                "changed or put back since; nothing is sealed or signed: restore the chain from a "
                f"backup; or, to keep the present blocks, run {GO_ON}"
            )
    return ""


def lost_blocks(folder: Path, size: int, evidence: str) -> str:
    """Say that the chain was longer once. size: its blocks. evidence: of how many there were."""
    return blocks_to_come(folder) or (
        f"the chain has lost blocks: {folder / 'blocks'} has {counted(size, 'block')}, but "
        f"{evidence}; nothing is sealed or signed: put back the newer blocks, or restore the chain "
        f"from a backup; or, if the missing blocks are gone for ever, run {GO_ON}, which continues "
        f"after block {size - 1}"
    )


def signed_size(folder: Path) -> int:
    """Return how many blocks the newest checkpoint has that this log signed; 0 without one."""
    signed = signed_by_us(folder)
    return 0 if signed is None else signed.size


def signed_by_us(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint, if a key that this log has or had signed it."""
    if (newest := checkpoints.newest_in(folder)) is None:
        return None
    note, signed = newest
    keys = [key for _, key in _key_in_files(folder)]
    with suppress(Damage):
        keys += keys_named(folder)
    return signed if any(is_signed(note, key) for key in keys) else None


def traces_of_log(folder: Path) -> list[str]:
    """Return the names of the files that the log of a chain has left in `folder`."""
    names = (KEY_NAME, VERIFIER_NAME, CHECKPOINT_NAME, SUCCESSIONS_NAME)
    return [name for name in names if (folder / name).exists()]
