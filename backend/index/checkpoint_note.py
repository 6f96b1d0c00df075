"""Tells whether an index file is whole, by the note that its writer leaves beside it.

The checksum of a page says that the page is as it was written once, not that it is the newest, nor
that all pages are of one moment. They are not if somebody copied the file while it was written to,
or if a damaged log was dropped of which a part had been brought into the file already. So the
writer leaves a note, `index-N.sqlite-settled`:

- *moving*: before it brings its log into the file, with the height that the file will show then;
- *settled*: after that, with the file's inode and the time of its last change.

A file is believed if it is as the last note says. If not, because it is a copy or the power failed,
everything in it is added up (`adds_up`): of pages from two moments one would count flights that the
other lacks. The notes are not synced; without the newest one an index is added up once more.
"""

import zlib
from pathlib import Path

import apsw
import msgspec

from backend.base import files
from backend.index.database import Position, position_in, snapshot

SUFFIX = "-settled"
ATTEMPTS = 100  # a writer may change its note between two looks, again and again

_NOOP = -1  # SQLITE_CHECKPOINT_NOOP: only tells how many frames the log has

# Statements whose every value is the number of flights, and how many values they have.
_COUNTS = {
    "SELECT count(*) FROM flight": 1,
    "SELECT sum(flights) FROM carrier_total GROUP BY span": 3,
    "SELECT sum(flights) FROM route_total GROUP BY span": 3,
    "SELECT sum(flights) FROM carrier_slot WHERE slot >= 24 GROUP BY carrier = 0": 2,
    "SELECT sum(flights) FROM route_slot WHERE slot >= 24": 1,
    "SELECT sum(flights) FROM ranking GROUP BY kind, span, carrier = 0": 12,
    "SELECT sum(flights) FROM number_total": 1,
    "SELECT sum(flights) / 2.0 FROM place": 1,
}
_NOTHING: tuple[list[tuple[None]], ...] = ([], [(None,)])  # sums of no rows
_ARRIVED = """
    SELECT span, sum(arrived) FROM carrier_total
    GROUP BY span HAVING sum(arrived) > 0 ORDER BY span"""
_DISTRIBUTED = """
    SELECT span, sum((SELECT sum(value) FROM json_each(CAST(counts AS TEXT))))
    FROM carrier_delays GROUP BY span ORDER BY span"""
_HOURS = """
    SELECT count(DISTINCT flights) <= 1 FROM (
        SELECT sum(flights) AS flights FROM route_slot WHERE slot < 24
        UNION ALL
        SELECT sum(flights) FROM carrier_slot WHERE slot < 24 GROUP BY carrier = 0, span)"""
_STRAYS = """
    SELECT (SELECT count(*) FROM place WHERE city NOT IN (SELECT city FROM city))
         + (SELECT count(*) FROM route WHERE origin NOT IN (SELECT place FROM place))
         + (SELECT count(*) FROM route WHERE dest NOT IN (SELECT place FROM place))
         + (SELECT count(*) FROM place WHERE airport NOT IN (SELECT place FROM place))
         + (SELECT count(*) FROM route WHERE pair NOT IN (SELECT route FROM route))"""
_CHECKS_OF_INDEXES = [
    f"PRAGMA integrity_check({table})" for table in ("city", "place", "route", "flight")
]


class Note(msgspec.Struct, frozen=True):
    """What a writer left. changed_ns: when the file was last changed; 0 while it is moving."""

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
    """The note beside the file at `path`; None if there is none that can be read."""
    try:
        checksum, _, data = path.with_name(path.name + SUFFIX).read_bytes().partition(b" ")
        return _decode(data) if int(checksum) == zlib.crc32(data) else None
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def _write(path: Path, note: Note) -> None:
    data = _encode(note)
    files.replace_unsynced(path.with_name(path.name + SUFFIX), b"%d %b" % (zlib.crc32(data), data))


def is_settled(connection: apsw.Connection, path: Path) -> bool:
    """Whether the index at `path` is as its note says; `connection` has it open.

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
    """How many pages the log has that were found good when it was opened. Raises apsw.Error."""
    return connection.wal_checkpoint(mode=_NOOP)[0]


def adds_up(connection: apsw.Connection) -> bool:
    """Whether all tables of an index count the same flights. Reads the whole file.

    Raises apsw.Error.
    """
    with snapshot(connection):
        position = position_in(connection)
        return position is not None and _adds_up_to(connection, position)


def _adds_up_to(connection: apsw.Connection, position: Position) -> bool:
    def rows(sql: str) -> list[tuple[object, ...]]:
        return connection.execute(sql).fetchall()

    flights = position.transactions
    return (
        all(
            rows(sql) == [(flights,)] * count or (flights == 0 and rows(sql) in _NOTHING)
            for sql, count in _COUNTS.items()
        )
        and rows(_ARRIVED) == rows(_DISTRIBUTED)
        and rows(_HOURS) == [(1,)]
        and rows(_STRAYS) == [(0,)]
        and all(rows(check) == [("ok",)] for check in _CHECKS_OF_INDEXES)
    )
