"""Cosigns checkpoints of logs, each of which must extend the one that was cosigned before.

The folder has the witness's key, and what it remembers of logs (`Memory`). What is kept changes
under a lock, which nobody holds while a proof is fetched: the checkpoint that is kept is compared
with what it was before.
"""

import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from backend.base import files
from backend.base.errors import Damage, FlightchainError, WriterBusy
from backend.base.words import counted
from backend.chain import merkle
from backend.trust.log import checkpoints, notes
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.notes import Note, NoteError, VerifierKey, signed_at
from backend.trust.log.secret_keys import WITNESS, SecretKey, secret_key

# Suffixes of files, each of which holds the note that was kept and one that contradicts it: another
# tree of the same size, a larger tree of which no proof was shown, a smaller tree.
FORK, UNPROVED, ROLLBACK = CONTRADICTIONS = (".fork", ".unproved", ".rollback")
MOST_CONTRADICTIONS = 100  # files of a kind for a log: whoever asks may cause them
_NAME_DIGITS = 16
_ADVICE = (
    "do not put back an older copy; if the file is removed, this witness forgets the log. Either "
    "way it cosigns whatever the log shows next: compare that with a checkpoint that somebody else "
    "has kept"
)
COPY = "put back a copy"
LOCK_NAME = "witness.lock"
MOST_ATTEMPTS = 3

# The proof of consistency between two sizes, which is empty if there is nothing to prove.
Prove = Callable[[int, int], Sequence[bytes]]
Parsed = TypeVar("Parsed")


class Memory:
    """The memory of the witness with this key. The caller sees to it that one writes at a time.

    For each log there is a note: the newest checkpoint that was cosigned, with the signatures of
    the log and of the witness, who says there when it was first seen. Beside it may stand the log's
    key (`.vkey`), and checkpoints that contradict it: see `CONTRADICTIONS`. For each URL that was
    looked at there is the origin of its log (`.url`). A witness that loses a note, or gets an older
    one back, cosigns whatever the log shows next.
    """

    def __init__(self, folder: Path, witness: VerifierKey) -> None:
        self._folder = folder
        self._witness = witness

    def note(self, origin: str) -> Note | None:
        """Return the newest cosigned checkpoint of a log; None if none was. Raises Damage."""

        def parsed(data: bytes) -> Note:
            note = notes.parse(data)
            if signed_at(note, self._witness) is None:
                raise NoteError("this witness has not signed it")
            return note

        return _kept(self._path(origin, ".note"), parsed, _ADVICE)

    def keep(self, origin: str, note: Note) -> None:
        """Keep a checkpoint with the signatures of the log and of this witness."""
        files.write_new(self._path(origin, ".note"), str(note).encode())

    def keep_contradiction(self, origin: str, kind: str, note: Note) -> Path | None:
        """Keep a checkpoint that contradicts the one that is kept, and that one with it.

        kind: one of CONTRADICTIONS. Returns the file; None if there are too many already.
        """
        data = f"{self.note(origin)}\n{note}".encode()
        digest = sha256(data).hexdigest()[:_NAME_DIGITS]
        path = self._path(origin, f"-{digest}{kind}")
        if not path.exists():
            if len(list(self._folder.glob(f"{self._name(origin)}-*{kind}"))) >= MOST_CONTRADICTIONS:
                return None
            files.write_new(path, data)
        return path

    def key_of(self, origin: str) -> VerifierKey | None:
        """Return the key of a log that `remember` has kept. Raises Damage."""
        path = self._path(origin, ".vkey")
        return _kept(path, lambda data: notes.parse_key(data.decode(errors="replace")), COPY)

    def remember(self, url: str, log: VerifierKey) -> None:
        """Keep which log was seen at a URL, and its key."""
        if self.origin_at(url) != log.name:
            files.write_new(self.origin_file(url), f"{log.name}\n".encode())
        if self.key_of(log.name) != log:
            files.write_new(self._path(log.name, ".vkey"), f"{log}\n".encode())

    def origin_file(self, url: str) -> Path:
        """Return the file that says which log was seen at a URL."""
        return self._path(url, ".url")

    def origin_at(self, url: str) -> str | None:
        """Return the origin of the log that was seen at a URL; None if none was. Raises Damage."""
        path = self.origin_file(url)
        return _kept(path, lambda data: data.decode().removesuffix("\n"), COPY)

    def _path(self, what: str, suffix: str) -> Path:
        return self._folder / f"{self._name(what)}{suffix}"

    @staticmethod
    def _name(what: str) -> str:
        """Return how files for an origin or a URL are named: like it, as far as files can be."""
        readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in what[:40])
        return f"{readable}-{sha256(what.encode()).hexdigest()[:_NAME_DIGITS]}"


def _kept(path: Path, parsed: Callable[[bytes], Parsed], remedy: str) -> Parsed | None:
    """Return what a file holds; None if it is not there. Raises Damage."""
    try:
        return parsed(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Damage(f"cannot use {files.reason_of(error, path, remedy)}") from error


class NotCosigned(FlightchainError):
    """The checkpoint is not cosigned. reason: why, without the file that shows it."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{reason}{where}")
        self.reason = reason


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
        self.folder = folder
        with self._lock():
            self.key: SecretKey = secret_key(folder, WITNESS, name)
        self.memory = Memory(folder, self.key.verifier)

    def cosign(self, data: bytes, log: VerifierKey, prove: Prove, old: int | None = None) -> Note:
        """Cosign a checkpoint of a log, and keep it. Returns it with the new signature alone.

        data: the note. log: the key that must have signed it. prove: makes the proof of
        consistency; it may take its time, as nobody waits for it. old: the number of blocks that
        the sender thinks are known here; None: any.

        Raises NoteError if the data is no checkpoint of that log, one of NotCosigned, and
        WriterBusy if others are faster again and again.
        """
        note, new = checkpoints.in_note(data)
        _require_signature(note, new, log)
        if old is not None and old > new.size:
            raise NoteError(f"the old size {old} is above that of the checkpoint, {new.size}")
        for _ in range(MOST_ATTEMPTS):
            newest = self.memory.note(new.origin)
            before = _checkpoint(newest, new.origin)
            if old not in {None, before.size}:
                raise OtherSize(before.size)
            self._require_extension(before, new, note, prove)
            with self._lock():
                if self.memory.note(new.origin) == newest:
                    return self._cosigned(note, is_kept=before == new and newest is not None)
        raise WriterBusy(f"others have cosigned {new.origin} at the same time; try again")

    def _cosigned(self, note: Note, *, is_kept: bool) -> Note:
        """Sign a note. is_kept: whether its tree is kept already, which says when it was seen.

        If that was later than now, this machine's clock was ahead: the log was first seen now.
        """
        seconds, origin = int(time.time()), checkpoints.parse(note.text).origin
        signature = self.key.cosignature(note.text, seconds)
        if not is_kept or self.grew_at(origin) > seconds:
            others = (other for other in note.signatures if other.key_id != signature.key_id)
            self.memory.keep(origin, Note(note.text, (*others, signature)))
        return Note(note.text, (signature,))

    def _require_extension(
        self, before: Checkpoint, new: Checkpoint, note: Note, prove: Prove
    ) -> None:
        """Raise RolledBack, Forked or Unproved unless the new checkpoint extends the one before.

        What contradicts the one before is kept.
        """
        had = f"{new.origin} had {counted(before.size, 'block')}"
        if new.size < before.size:
            why = "it was restored to an older state, or is not up to date"
            reason = f"{had}, and shows {new.size} now: {why}"
            raise RolledBack(reason, self._kept_as(ROLLBACK, note))
        if new.size == before.size and new.root != before.root:
            reason = f"{had}, and has signed other {new.size} blocks"
            raise Forked(reason, self._kept_as(FORK, note))
        try:
            proof = prove(before.size, new.size)
            merkle.verify_consistency(before.size, new.size, before.root, new.root, proof)
        except merkle.ProofError as error:
            if before.size in {0, new.size}:
                sizes = f"from {before.size} to {counted(new.size, 'block')}"
                raise Unproved(f"{new.origin} {sizes} needs no proof, and one was sent") from error
            reason = f"{had}, and nothing shows that they are still there: {error}"
            raise Unproved(reason, self._kept_as(UNPROVED, note)) from error

    def _kept_as(self, kind: str, note: Note) -> str:
        """Keep a note that contradicts the one that is kept. Returns words that say where."""
        origin = checkpoints.parse(note.text).origin
        with self._lock():
            path = self.memory.keep_contradiction(origin, kind, note)
        if path is None:
            return f": there are too many files *{kind} already to keep this one, too"
        return f": both are in {path}"

    def remember(self, url: str, log: VerifierKey) -> None:
        with self._lock():
            self.memory.remember(url, log)

    def _lock(self) -> files.FileLock:
        return files.FileLock(self.folder / LOCK_NAME)

    def size_of(self, origin: str) -> int:
        """Return how many blocks the checkpoint of a log has that is kept; 0 without one."""
        return _checkpoint(self.memory.note(origin), origin).size

    def grew_at(self, origin: str) -> int:
        """Return when the checkpoint of a log was first seen that is kept now, in Unix seconds."""
        newest = self.memory.note(origin)
        return 0 if newest is None else signed_at(newest, self.key.verifier) or 0


def _checkpoint(newest: Note | None, origin: str) -> Checkpoint:
    """Return the checkpoint in a note; without one that of an empty log."""
    if newest is None:
        return Checkpoint(origin, 0, merkle.EMPTY_ROOT)
    return checkpoints.parse(newest.text)


def _require_signature(note: Note, checkpoint: Checkpoint, log: VerifierKey) -> None:
    """Raise NotSigned unless a checkpoint is of the log that this key belongs to."""
    try:
        is_signed = checkpoint.origin == log.name and signed_at(note, log) is not None
    except NoteError as error:
        raise NotSigned(f"the checkpoint of {checkpoint.origin} is not signed: {error}") from error
    if not is_signed:
        raise NotSigned(
            f"the checkpoint of {checkpoint.origin} is not signed by {log}; if its owner has given "
            "the log a new key (`log rotate-key`), name that one with --key"
        )
