"""Keeps what a witness remembers of logs, in files of its folder.

For each log there is a note: the newest checkpoint that was cosigned, with the signatures of the
log and of the witness, who says there when it was first seen. Beside it may stand the log's key
(`.vkey`), and checkpoints that contradict it: see `CONTRADICTIONS`. For each URL that was looked at
there is the origin of its log (`.url`). A witness that loses a note, or gets an older one back,
cosigns whatever the log shows next.
"""

from hashlib import sha256
from pathlib import Path

from backend.base import files
from backend.base.errors import Damage
from backend.trust.log import notes
from backend.trust.log.notes import Note, NoteError, VerifierKey, signed_at

# Suffixes of files, each of which holds the note that was kept and one that contradicts it: another
# tree of the same size, a larger tree of which no proof was shown, a smaller tree.
FORK, UNPROVED, ROLLBACK = CONTRADICTIONS = (".fork", ".unproved", ".rollback")
MOST_CONTRADICTIONS = 100  # files of a kind for a log: whoever asks may cause them
_NAME_DIGITS = 16
_ADVICE = (
    "Do not put back an older copy, and know that this witness forgets the log if the file is "
    "removed: either way it cosigns whatever the log shows next. Compare that with a checkpoint "
    "that somebody else has kept"
)


class Memory:
    """The memory of the witness with this key. The caller sees to it that one writes at a time."""

    def __init__(self, folder: Path, witness: VerifierKey) -> None:
        self._folder = folder
        self._witness = witness

    def note(self, origin: str) -> Note | None:
        """Return the newest cosigned checkpoint of a log; None if none was. Raises Damage."""
        path = self._path(origin, ".note")
        try:
            note = notes.parse(path.read_bytes())
            if signed_at(note, self._witness) is None:
                raise NoteError("this witness has not signed it")
        except FileNotFoundError:
            return None
        except (OSError, NoteError) as error:
            raise Damage(f"{path} is damaged: {error}. {_ADVICE}") from error
        return note

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
        """Return the key of a log that `remember_key` has kept. Raises Damage."""
        path = self._path(origin, ".vkey")
        try:
            return notes.parse_key(path.read_text("utf-8", errors="replace"))
        except FileNotFoundError:
            return None
        except (OSError, NoteError) as error:
            raise Damage(f"{path} is damaged: {error}; put back a copy") from error

    def remember_key(self, log: VerifierKey) -> None:
        """Keep the key of a log."""
        files.write_new(self._path(log.name, ".vkey"), f"{log}\n".encode())

    def origin_file(self, url: str) -> Path:
        """Return the file that says which log was seen at a URL."""
        return self._path(url, ".url")

    def origin_at(self, url: str) -> str | None:
        """Return the origin of the log that was seen at a URL; None if none was. Raises Damage."""
        path = self.origin_file(url)
        try:
            return path.read_text("utf-8").removesuffix("\n")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Damage(f"{path} is damaged: {error}; put back a copy") from error

    def remember_origin(self, url: str, origin: str) -> None:
        """Keep which log was seen at a URL."""
        files.write_new(self.origin_file(url), f"{origin}\n".encode())

    def _path(self, what: str, suffix: str) -> Path:
        return self._folder / f"{self._name(what)}{suffix}"

    @staticmethod
    def _name(what: str) -> str:
        """Return how files for an origin or a URL are named: like it, as far as files can be."""
        readable = "".join(c if c.isascii() and c.isalnum() else "-" for c in what[:40])
        return f"{readable}-{sha256(what.encode()).hexdigest()[:_NAME_DIGITS]}"
