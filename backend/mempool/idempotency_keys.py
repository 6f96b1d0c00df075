"""Remembers idempotency keys: a client sends one with a request that it may have to send again.

A key is in the same record of the mempool's log as its flights, and in the memory of every process
that has read the record, as long as the record's segment exists. Before the segment is removed, its
keys are copied to `mempool/keys.sqlite`, which is synced first; after a day they are forgotten. So
a key is as durable as its flights.

Every page of that file carries a checksum, which `backend.storage.checked_sqlite` explains, so a
key that is not found was not used. Files of earlier releases have no checksums. They are read as
they are, and replaced by a file with checksums when keys are copied the next time. An empty file
holds no keys. A missing file is damage as long as it must be there, because the keys in it are not
known then.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

import apsw

from backend.errors import DamagedMempool, KeyReused
from backend.storage import checked_sqlite, files

KEPT_MS = 24 * 60 * 60 * 1000
FILE_NAME = "keys.sqlite"

_CHECKED = 1  # PRAGMA user_version of a file with checksums; in earlier releases it is 0
_SCHEMA = f"""
    PRAGMA user_version = {_CHECKED};
    CREATE TABLE key_use (
        key        TEXT PRIMARY KEY,
        body_hash  TEXT NOT NULL,
        first      INTEGER NOT NULL,
        count      INTEGER NOT NULL,
        timestamp  INTEGER NOT NULL
    ) WITHOUT ROWID"""
_SELECT = "SELECT key, body_hash, first, count, timestamp FROM key_use"
_INSERT = "INSERT OR REPLACE INTO key_use VALUES (?, ?, ?, ?, ?)"

_Row = tuple[str, str, int, int, int]


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key, as the client chose it, and the SHA-256 (hexadecimal) of the body sent with it."""

    text: str
    body_hash: str


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What a key was used for.

    body_hash: as in `IdempotencyKey`. first, count: the first id of its flights, and how many there
    are. timestamp: when they were accepted, UTC milliseconds.
    """

    body_hash: str
    first: int
    count: int
    timestamp: int


class Keys:
    """The keys of the mempool in `folder`. Call `find` and `keep` under the lock of processes."""

    def __init__(self, folder: Path, kept_until: int = 0) -> None:
        """kept_until: until when the file must be there, UTC milliseconds; 0 if unknown."""
        self._path = folder / FILE_NAME
        self.kept_until = kept_until
        self._in_log: dict[str, KeyUse] = {}  # in the order of their ids

    def add(self, text: str, use: KeyUse) -> None:
        """Remember a key of the log, whose record comes after those of all keys added before."""
        self._in_log.pop(text, None)  # used again after a day: it moves to the end
        self._in_log[text] = use

    def forget(self, below: int) -> None:
        """Drop the keys of ids below `below`; their segments are gone, and `keep` has kept them."""
        while self._in_log:
            text, use = next(iter(self._in_log.items()))
            if use.first >= below:
                break
            del self._in_log[text]

    def forget_log(self) -> None:
        """Drop every key of the log, because the log will be read again."""
        self._in_log.clear()

    def find(self, key: IdempotencyKey, now_ms: int) -> KeyUse | None:
        """What `key` was used for in the last day; None if it was not used.

        A use more than a day in the future does not count either: the clock had leapt then, and was
        put back. Raises KeyReused if the key came with another body, DamagedMempool if the file is
        missing or unreadable.
        """
        use = self._in_log.get(key.text) or self._kept(key.text, now_ms)
        if use is None or not _is_of_a_day(use.timestamp, now_ms):
            return None
        if use.body_hash != key.body_hash:
            raise KeyReused(key.text, use.first)
        return use

    def _kept(self, text: str, now_ms: int) -> KeyUse | None:
        self._require_there(now_ms)
        if not self._holds_keys():
            return None
        with self._opened() as connection:
            row = connection.execute(f"{_SELECT} WHERE key = ?", (text,)).fetchone()
        return None if row is None else KeyUse(*row[1:])

    def require_readable(self, now_ms: int) -> None:
        """Raise DamagedMempool if looking up a key fails. Not every page is read."""
        self._kept("", now_ms)

    def check(self, now_ms: int) -> int:
        """How many keys the file holds; every page of it is read. Raises DamagedMempool."""
        self._require_there(now_ms)
        if not self._holds_keys():
            return 0
        with self._sound_copy() as copied:
            return len(_rows_in(copied))

    def copy(self) -> bytes | None:
        """The bytes of the file, every page checked; None without a file. Raises DamagedMempool."""
        if not self._holds_keys():
            return b"" if self._path.exists() else None
        with self._sound_copy() as copied:
            return copied.serialize("main")

    def copy_below(self, first: int, folder: Path) -> None:
        """Copy the keys of ids below `first` to a new file in `folder`, if this one holds keys.

        Raises DamagedMempool, WriteFailed.
        """
        if not self._holds_keys():
            return
        with self._sound_copy() as copied:
            rows = [row for row in _rows_in(copied) if row[2] < first]
        Keys(folder)._make(rows)

    def keep(self, first: int, following: int, now_ms: int) -> int:
        """Copy the keys of ids `first` to `following` (exclusive) to the file.

        The segment with their records may be removed then. Returns until when the file must be
        there, UTC milliseconds; 0 if there were no keys. Raises DamagedMempool if the file cannot
        be used, WriteFailed if it cannot be written; it is unchanged then.
        """
        going = [
            (text, *astuple(use))
            for text, use in self._in_log.items()
            if first <= use.first < following
        ]
        if not going:
            return 0
        self._require_there(now_ms)
        self._make_checked()
        with self._opened() as connection:
            connection.execute("PRAGMA synchronous = EXTRA")  # syncs the folder, too
            with connection:
                connection.execute(
                    "DELETE FROM key_use WHERE timestamp NOT BETWEEN ? AND ?",
                    (now_ms - KEPT_MS, now_ms + KEPT_MS),
                )
                connection.executemany(_INSERT, going)
        newest = max(row[-1] for row in going)
        self.kept_until = max(self.kept_until, min(newest, now_ms) + KEPT_MS)
        return self.kept_until

    # --- the file ----------------------------------------------------------------------------

    def _holds_keys(self) -> bool:
        """Whether the file exists and is not empty."""
        try:
            return self._path.stat().st_size > 0
        except FileNotFoundError:
            return False

    def _require_there(self, now_ms: int) -> None:
        """Raise DamagedMempool if the file is missing and held a key of the last day."""
        if _is_of_a_day(self.kept_until - KEPT_MS, now_ms) and not self._path.exists():
            raise DamagedMempool(
                f"{self._path} is missing, so the ledger does not know what was sent with a key "
                "in the last "
                "day; restore it, or create an empty file with that name to continue without it"
            )

    def _make_checked(self) -> None:
        """Make the file if it does not exist, or make it anew if its pages have no checksums."""
        rows: list[_Row] = []
        if self._holds_keys():
            with self._opened() as old:  # which also deals with its journal
                if _is_checked(old):
                    return
                _require_sound(old)
                rows = _rows_in(old)
        self._make(rows)

    def _make(self, rows: Iterable[_Row]) -> None:
        """Write a file with checksums beside the present one, then replace that one durably."""
        new = self._path.with_name(f"{FILE_NAME}.tmp")
        files.remove(new)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with self._usable(), closing(checked_sqlite.connect(_uri(new), flags)) as connection:
            checked_sqlite.reserve_checksums(connection)
            connection.execute("PRAGMA journal_mode = OFF")  # after a crash it is made again
            connection.execute("PRAGMA synchronous = OFF")  # the whole file is synced below
            connection.execute(_SCHEMA)
            with connection:
                connection.executemany(_INSERT, rows)
        _sync(new)
        files.remove(self._path.with_name(f"{FILE_NAME}-journal"))  # belongs to the old file
        files.rename(new, self._path)

    @contextmanager
    def _opened(self) -> Iterator[apsw.Connection]:
        """Open the file. Raises DamagedMempool.

        It is opened for writing even by those who only read, because SQLite must first roll back
        what a process left unfinished that died while it wrote. On a read-only disk SQLite opens it
        for reading.
        """
        flags = apsw.SQLITE_OPEN_READWRITE
        with self._usable(), closing(checked_sqlite.connect(_uri(self._path), flags)) as connection:
            if _is_checked(connection):
                checked_sqlite.require_checksums(connection)
            yield connection

    @contextmanager
    def _sound_copy(self) -> Iterator[apsw.Connection]:
        """Copy the file to memory, which reads every page. Raises DamagedMempool."""
        with (
            self._opened() as connection,
            closing(apsw.Connection(":memory:")) as copied,
        ):
            with copied.backup("main", connection, "main") as backup:
                backup.step()
            _require_sound(copied)
            yield copied

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Turn errors of SQLite into DamagedMempool, which says what to do."""
        try:
            yield
        except apsw.Error as error:
            raise DamagedMempool(
                f"{self._path} cannot be used: {_reason(error)}; if the disk is sound the file is "
                "damaged: put an empty one in its place, and keys of the last day may be used twice"
            ) from error


def _is_of_a_day(timestamp: int, now_ms: int) -> bool:
    """Whether the two times, in UTC milliseconds, are at most a day apart."""
    return abs(now_ms - timestamp) <= KEPT_MS


def _uri(path: Path) -> str:
    return path.absolute().as_uri()


def _is_checked(connection: apsw.Connection) -> bool:
    """Whether the pages of the file must have checksums. Raises apsw.Error."""
    return bool(connection.execute("PRAGMA user_version").get)


def _require_sound(connection: apsw.Connection) -> None:
    """Raise Wrong if the tables do not hold together. Raises apsw.Error."""
    problem = connection.execute("PRAGMA integrity_check(1)").get
    if problem != "ok":
        raise checked_sqlite.Wrong(str(problem))


def _rows_in(connection: apsw.Connection) -> list[_Row]:
    """Every key with its use. Raises apsw.Error."""
    return [(*row,) for row in connection.execute(_SELECT)]


def _reason(error: apsw.Error) -> str:
    """What SQLite found wrong, in words; it has no words of its own for a wrong checksum."""
    if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_DATA:
        return "a page does not agree with its checksum"
    return str(error)


def _sync(path: Path) -> None:
    """Return only when the file is on the disk. Raises WriteFailed."""
    descriptor = files.open_for_writing(path)
    try:
        files.sync(descriptor, path)
    finally:
        os.close(descriptor)
