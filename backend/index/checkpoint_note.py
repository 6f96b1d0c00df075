"""Notes beside an index file how far its writer has brought the log into it.

The checksum of a page says that the page is as it was written once, not that it is the newest, nor
that all pages are of one moment. They are not if somebody copied the file while it was written to,
or if a damaged log was dropped of which a part had been brought into the file already. So the
writer leaves a note, `index-N.sqlite-settled`:

- *moving*: before it brings its log into the file, with the height that the file will show then;
- *settled*: after that, with the file's inode and the time of its last change.

A file is trusted if it is as the last note says. Any other, such as a copy, is read to its end once
(`table_checks.inconsistency`) and noted, or rebuilt. Notes are synced, as what they speak of is: a
power cut leaves an index that is trusted.
"""

import zlib
from pathlib import Path

import apsw
import msgspec

from backend.base import files
from backend.index.index_file import position_in

SUFFIX = "-settled"
ATTEMPTS = 100  # a writer may change its note between two looks, again and again

_NOOP = -1  # SQLITE_CHECKPOINT_NOOP: only tells how many frames the log has


class Note(msgspec.Struct, frozen=True):
    """A writer's note. changed_ns: when the file was last changed; 0 while it is moving."""

    height: int
    inode: int
    changed_ns: int

    @property
    def is_moving(self) -> bool:
        """Whether the log was being brought into the file."""
        return self.changed_ns == 0


_decode = msgspec.json.Decoder(Note).decode
_encode = msgspec.json.Encoder().encode


def note_moving(path: Path, height: int) -> None:
    """Note that the file at `path` is about to be brought to `height`. Raises WriteFailed."""
    _write(path, Note(height, path.stat().st_ino, 0))


def note_settled(path: Path, height: int) -> None:
    """Note that the file at `path` stands whole at `height`. Raises WriteFailed."""
    status = path.stat()
    _write(path, Note(height, status.st_ino, status.st_ctime_ns))


def note_of(path: Path) -> Note | None:
    """Return the note beside the file at `path`; None if there is none that can be read."""
    try:
        checksum, _, data = path.with_name(path.name + SUFFIX).read_bytes().partition(b" ")
        return _decode(data) if int(checksum) == zlib.crc32(data) else None
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def _write(path: Path, note: Note) -> None:
    data = _encode(note)
    files.write_new(path.with_name(path.name + SUFFIX), b"%d %b" % (zlib.crc32(data), data))


def is_settled(connection: apsw.Connection, path: Path) -> bool:
    """Return whether the index at `path` is as its note says; `connection` has it open.

    Raises apsw.Error.
    """
    note = note_of(path)
    for _ in range(ATTEMPTS):
        if note is not None and _is_as_noted(connection, path, note):
            return True
        before, note = note, note_of(path)
        if note == before:
            return False
    return False


def _is_as_noted(connection: apsw.Connection, path: Path, note: Note) -> bool:
    status = path.stat()
    position = position_in(connection)
    if position is None or position.height < note.height or status.st_ino != note.inode:
        return False
    if note.is_moving:  # what is not in the file yet must be in the log
        return frames_in_log(connection) > 0
    return status.st_ctime_ns == note.changed_ns


def frames_in_log(connection: apsw.Connection) -> int:
    """Return how many pages the log has that were found good when it was opened.

    Raises apsw.Error.
    """
    return connection.wal_checkpoint(mode=_NOOP)[0]
