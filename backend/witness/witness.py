"""Cosigns checkpoints of logs, each of which must extend the one that was cosigned before.

The folder has the witness's key, and for each log a note: the newest checkpoint that was cosigned,
with the signatures of the log and of the witness, who says there when it was first seen. Beside it
may stand the log's key (`.vkey`), and what shows that the log has forked (`.fork`).
"""

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from backend.chain import merkle
from backend.errors import Damage, FlightchainError
from backend.storage import files
from backend.transparency import checkpoints, notes
from backend.transparency.checkpoints import Checkpoint
from backend.transparency.notes import Note, NoteError, Signature, VerifierKey
from backend.transparency.secret_keys import WITNESS, SecretKey, secret_key
from backend.transparency.verifying import signed_at
from backend.words import counted

LOCK_NAME = "witness.lock"
_NAME_DIGITS = 16

# The proof of consistency between two sizes, which is empty if there is nothing to prove.
Prove = Callable[[int, int], Sequence[bytes]]


class NotCosigned(FlightchainError):
    """The checkpoint is not cosigned."""


class NotSigned(NotCosigned):
    """The log has not signed the checkpoint."""


class OtherSize(NotCosigned):
    """The witness keeps a checkpoint of another size than was thought: `size` blocks."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the newest checkpoint that is known here has {counted(size, 'block')}")
        self.size = size


class Unproved(NotCosigned):
    """Nothing shows that the checkpoint extends the one that is kept."""


class RolledBack(NotCosigned):
    """The log shows fewer blocks than it had."""


class Forked(NotCosigned):
    """The log has signed two trees of the same size: it tells one this, and another that."""


class Witness:
    """The witness whose key and checkpoints are in `folder`, which is made if need be."""

    def __init__(self, folder: Path, name: str) -> None:
        """name: of a key that is made; an address without `https://`, such as `example.org/pi`."""
        files.make_folder(folder)
        self._folder = folder
        self.key: SecretKey = secret_key(folder, WITNESS, name)

    def kept(self, origin: str) -> Note | None:
        """The newest checkpoint of a log that was cosigned; None if none was. Raises Damage."""
        path = self._path(origin)
        try:
            note = notes.parse(path.read_bytes())
            if signed_at(note, self.key.verifier) is None:
                raise NoteError("this witness has not signed it")
        except FileNotFoundError:
            return None
        except (OSError, NoteError) as error:
            raise Damage(f"{path} is damaged: {error}; put back a copy, or remove it") from error
        return note

    def cosign(self, data: bytes, log: VerifierKey, prove: Prove, old: int | None = None) -> Note:
        """Cosign a checkpoint of a log, and keep it. Returns it with the new signature alone.

        data: the note. log: the key that must have signed it. prove: makes the proof of
        consistency. old: the number of blocks that the sender thinks are known here; None: any.

        Raises NoteError if the data is no checkpoint of that log, and one of NotCosigned.
        """
        note, new = checkpoints.in_note(data)
        _require_signature(note, new, log)
        if old is not None and old > new.size:
            raise NoteError(f"the old size {old} is above that of the checkpoint, {new.size}")
        with files.FileLock(self._folder / LOCK_NAME):
            kept = self.kept(new.origin)
            before = Checkpoint(new.origin, 0, merkle.EMPTY_ROOT)
            if kept is not None:
                before = checkpoints.parse(kept.text)
            if old not in {None, before.size}:
                raise OtherSize(before.size)
            self._require_extension(before, new, note, kept, prove)
            signature = self.key.cosignature(note.text, int(time.time()))
            if kept is None or kept.text != note.text:  # else it says when that was first seen
                self._keep(new.origin, note, signature)
            return Note(note.text, (signature,))

    def _require_extension(
        self, before: Checkpoint, new: Checkpoint, note: Note, kept: Note | None, prove: Prove
    ) -> None:
        """Raise Unproved or Forked unless the new checkpoint extends the one before."""
        had = f"{new.origin} had {counted(before.size, 'block')}"
        if new.size < before.size:
            raise RolledBack(
                f"{had}, and shows {new.size} now: it was put back, or is not up to date"
            )
        if new.size == before.size and new.root != before.root:
            path = self._path(new.origin, ".fork")
            files.write_new(path, f"{kept}\n{note}".encode())
            raise Forked(f"{had}, and has signed other {new.size} blocks: both are in {path}")
        try:
            proof = prove(before.size, new.size)
            merkle.verify_consistency(before.size, new.size, before.root, new.root, proof)
        except merkle.ProofError as error:
            reason = f"{had}, and nothing shows that they are still there: {error}"
            raise Unproved(reason) from error

    def _keep(self, origin: str, note: Note, signature: Signature) -> None:
        """Keep a checkpoint with the signatures of the log and of this witness."""
        others = (one for one in note.signatures if one.key_id != signature.key_id)
        files.write_new(self._path(origin), str(Note(note.text, (*others, signature))).encode())

    def grew_at(self, origin: str) -> int:
        """When the checkpoint of a log was first seen that is kept now, in Unix seconds."""
        kept = self.kept(origin)
        return 0 if kept is None else signed_at(kept, self.key.verifier) or 0

    def key_of(self, origin: str) -> VerifierKey | None:
        """The key of a log that `remember` has kept. Raises Damage."""
        path = self._path(origin, ".vkey")
        try:
            return notes.parse_key(path.read_text("ascii", errors="replace"))
        except FileNotFoundError:
            return None
        except (OSError, NoteError) as error:
            raise Damage(f"{path} is damaged: {error}; put back a copy") from error

    def remember(self, log: VerifierKey) -> None:
        """Keep the key of a log."""
        files.write_new(self._path(log.name, ".vkey"), f"{log}\n".encode())

    def _path(self, origin: str, suffix: str = ".note") -> Path:
        """A file for a log; its name begins like the origin, as far as files can be named so."""
        readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in origin[:40])
        digits = sha256(origin.encode()).hexdigest()[:_NAME_DIGITS]
        return self._folder / f"{readable}-{digits}{suffix}"


def _require_signature(note: Note, checkpoint: Checkpoint, log: VerifierKey) -> None:
    """Raise NotSigned unless a checkpoint is of the log that this key belongs to."""
    try:
        is_signed = checkpoint.origin == log.name and signed_at(note, log) is not None
    except NoteError as error:
        raise NotSigned(f"the checkpoint of {checkpoint.origin} is not signed: {error}") from error
    if not is_signed:
        raise NotSigned(f"the checkpoint of {checkpoint.origin} is not signed by {log}")
