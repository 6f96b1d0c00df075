"""Gives the log a new key, which the old key signs, so that who knows the old one can follow.

`log.successions` holds a signed note for each new key, oldest first, as a list in JSON:

    flightchain key succession
    the old verifier key
    the new verifier key

The new key is in `log.key.new` until everything else has been done. So a rotation that breaks off
is finished later, or has not happened if the note is not on the disk.
"""

from contextlib import suppress
from pathlib import Path

from backend.base import files
from backend.trust.log import CHECKPOINT_NAME, checkpoints
from backend.trust.log.notes import NoteError
from backend.trust.log.secret_keys import (
    LOG,
    SecretKey,
    log_key,
    new_key,
    parsed_key,
    public_text,
    write_checkpoint,
)
from backend.trust.log.successions import add_succession, checked_successions, successions_in

_NEW = f"{LOG.secret}.new"


def rotate(folder: Path, new: SecretKey | None = None) -> SecretKey:
    """Give the log a new key, and sign the newest checkpoint with it. Returns the new key.

    new: the key, if it is not to be made; it has the name of the old one.
    Only the process that holds the lock for writing may call it. Raises NotFound if there is no key
    yet, Damage, WriteFailed.
    """
    finish_rotation(folder)
    old = log_key(folder)
    new = new or new_key(old.verifier.name, LOG)
    new.follows = (*old.follows, str(old.verifier))
    files.write_new(folder / _NEW, str(new).encode(), files.LOCK_MODE)
    add_succession(folder, old, new)
    finish_rotation(folder)
    return new


def finish_rotation(folder: Path) -> None:
    """Finish a rotation that has broken off, or drop it if nobody can know of it yet."""
    path = folder / _NEW
    try:
        new = parsed_key(path.read_text("utf-8", errors="replace"))
    except FileNotFoundError:
        return
    newest = (successions_in(folder) or [""])[-1]
    if new is None or f"\n{new.verifier}\n\n" not in newest:
        files.remove(path)
        return
    files.write_new(folder / LOG.public, public_text(new))
    # The miner makes one that is missing or damaged; one that cannot be read now is waited for.
    with suppress(FileNotFoundError, NoteError):
        _, newest_signed = checkpoints.in_note((folder / CHECKPOINT_NAME).read_bytes())
        write_checkpoint(folder, new, newest_signed)
    files.rename(path, folder / LOG.secret)


def note_predecessor(folder: Path, key: SecretKey) -> None:
    """Write into the file of a key which keys it followed, if an earlier release left that out.

    Raises Damage, WriteFailed.
    """
    if key.follows or not (chain := checked_successions(folder, key)):
        return
    key.follows = tuple(str(succession.old) for succession in chain)
    files.write_new(folder / LOG.secret, str(key).encode(), files.LOCK_MODE)
