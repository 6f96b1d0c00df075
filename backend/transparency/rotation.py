"""Gives the log a new key, which the old key signs, so that who knows the old one can follow.

`log.successions` holds a signed note for each new key, oldest first, as a list in JSON:

    flightchain key succession
    the old verifier key
    the new verifier key

The new key is in `log.key.new` until the note is on the disk, and then takes the place of the old
one. So a rotation that breaks off is either finished later or has not happened.
"""

import json
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backend.errors import Damage, NotFound
from backend.storage import files
from backend.transparency import CHECKPOINT_NAME, checkpoints, notes
from backend.transparency.notes import Note, NoteError
from backend.transparency.secret_keys import LOG, SecretKey, key_in, parsed_key

SUCCESSIONS_NAME = "log.successions"
TITLE = "flightchain key succession"
_NEW = f"{LOG.secret}.new"


def successions_in(folder: Path) -> list[str]:
    """The notes with which old keys have signed new ones, oldest first. Raises Damage."""
    path = folder / SUCCESSIONS_NAME
    try:
        found = json.loads(path.read_text("utf-8", errors="replace"))
        is_right = isinstance(found, list) and all(isinstance(one, str) for one in found)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise Damage(f"{path} is damaged or cannot be read; put back a copy")
    return list(found)


def rotate(folder: Path) -> SecretKey:
    """Give the log a new key, and sign the newest checkpoint with it. Returns the new key.

    Only the process that holds the lock for writing may call it. Raises NotFound if there is no key
    yet, Damage, WriteFailed.
    """
    finish_rotation(folder)
    old = key_in(folder)
    if old is None:
        raise NotFound("the log has no key yet; the miner makes it when it starts")
    new = SecretKey(old.verifier.name, Ed25519PrivateKey.generate().private_bytes_raw())
    files.write_new(folder / _NEW, str(new).encode(), files.LOCK_MODE)
    text = f"{TITLE}\n{old.verifier}\n{new.verifier}\n"
    told = [*successions_in(folder), str(Note(text, (old.signature(text),)))]
    files.write_new(folder / SUCCESSIONS_NAME, json.dumps(told, indent=1).encode())
    finish_rotation(folder)
    return new


def finish_rotation(folder: Path) -> None:
    """Finish a rotation that has broken off, or drop it if nobody can know of it yet."""
    path = folder / _NEW
    try:
        new = parsed_key(path.read_text("ascii", errors="replace"))
    except FileNotFoundError:
        _publish(folder)
        return
    newest = (successions_in(folder) or [""])[-1]
    if new is None or f"\n{new.verifier}\n\n" not in newest:
        files.remove(path)
        return
    files.rename(path, folder / LOG.secret)
    _publish(folder)


def _publish(folder: Path) -> None:
    """Let the public files say what the secret one does, after the key of the newest succession."""
    newest = (successions_in(folder) or [""])[-1]
    with suppress(FileNotFoundError):
        key = parsed_key((folder / LOG.secret).read_text("ascii", errors="replace"))
        if key is None or f"\n{key.verifier}\n\n" not in newest:
            return
        public = f"{key.verifier}\n".encode()
        if (folder / LOG.public).read_bytes() != public:
            files.write_new(folder / LOG.public, public)
            _sign_again(folder, key)


def _sign_again(folder: Path, key: SecretKey) -> None:
    """Sign the newest checkpoint with another key; the miner does that with all that follow."""
    path = folder / CHECKPOINT_NAME
    with suppress(FileNotFoundError, NoteError):
        text = str(checkpoints.parse(notes.parse(path.read_bytes()).text))
        files.replace_unsynced(path, str(Note(text, (key.signature(text),))).encode())
