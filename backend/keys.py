"""Idempotency keys: what a client sends with a request that it may have to send again.

A key stands in the record of the mempool that it came with, and in the memory of every process that
has read the record, while its segment is there. Before the segment is removed its keys are kept in
`mempool/keys.sqlite`, which is synced first; after a day they are forgotten. So a key is durable
exactly as its flights are.
"""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from backend.errors import DamagedMempool, KeyReused

KEPT_MS = 24 * 60 * 60 * 1000
FILE_NAME = "keys.sqlite"

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS key_use (
        key        TEXT PRIMARY KEY,
        body_hash  TEXT NOT NULL,
        first      INTEGER NOT NULL,
        count      INTEGER NOT NULL,
        timestamp  INTEGER NOT NULL,
        checksum   INTEGER  -- of the other columns; none in rows of earlier releases
    ) WITHOUT ROWID"""
_COLUMNS = ("key", "body_hash", "first", "count", "timestamp")  # that the checksum covers


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """text: as the client chose it. body_hash: SHA-256 of what was sent with it, in hexadecimal."""

    text: str
    body_hash: str


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What a key was used for. first, count: the ids. timestamp: acceptance, UTC milliseconds."""

    body_hash: str
    first: int
    count: int
    timestamp: int


class Keys:
    """The keys of the mempool in `folder`. `find` and `keep` ask for the lock between processes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._in_log: dict[str, KeyUse] = {}  # in the order of their ids

    def add(self, text: str, use: KeyUse) -> None:
        """Remember a key that stands in the log, behind all that were added before."""
        self._in_log.pop(text, None)  # used again after a day: it moves to the end
        self._in_log[text] = use

    def forget(self, below: int) -> None:
        """Drop the keys of ids below `below`: their records are gone, and `keep` came before."""
        while self._in_log:
            text, use = next(iter(self._in_log.items()))
            if use.first >= below:
                break
            del self._in_log[text]

    def forget_log(self) -> None:
        """Drop every key that stands in the log, which will be read anew."""
        self._in_log.clear()

    def find(self, key: IdempotencyKey, now_ms: int) -> KeyUse | None:
        """What `key` was used for in the last day.

        A use that is more than a day ahead is over, too: a clock had leapt, and was put back.
        Raises KeyReused if it came with something else, DamagedMempool if the file is unreadable.
        """
        use = self._in_log.get(key.text) or self._kept(key.text)
        if use is None or abs(now_ms - use.timestamp) > KEPT_MS:
            return None
        if use.body_hash != key.body_hash:
            raise KeyReused(key.text, use.first)
        return use

    def _kept(self, text: str) -> KeyUse | None:
        if not self._path.exists():
            return None
        with self._usable(), closing(self._reading()) as connection:
            row = connection.execute("SELECT * FROM key_use WHERE key = ?", (text,)).fetchone()
            return None if row is None else _use_in(row)

    def require_readable(self) -> None:
        """Raise DamagedMempool if the file of keys cannot be used, as far as a look tells."""
        self._kept("")

    def check(self) -> int:
        """How many keys the file holds, each of them checked. Raises DamagedMempool."""
        if not self._path.exists():
            return 0
        with self._usable(), closing(self._reading()) as connection:
            return _sound_rows(connection)

    def copy(self, below: int | None = None) -> bytes | None:
        """The file as it is at one moment, checked; None if there is none. Raises DamagedMempool.

        below: keys of ids from there on are left out.
        """
        if not self._path.exists():
            return None
        with (
            self._usable(),
            closing(self._reading()) as connection,
            closing(sqlite3.connect(":memory:")) as copied,
        ):
            connection.backup(copied)
            _sound_rows(copied)
            if below is not None:
                with copied:
                    copied.execute("DELETE FROM key_use WHERE first >= ?", (below,))
            return copied.serialize()

    def _reading(self) -> sqlite3.Connection:
        """A connection that works where nothing can be written, too."""
        return sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)

    def keep(self, first: int, following: int, now_ms: int) -> None:
        """Keep the keys of ids from `first` to `following` (exclusive): their records will go.

        Raises DamagedMempool if the file cannot be used; then it is as it was.
        """
        going = [
            (text, *astuple(use))
            for text, use in self._in_log.items()
            if first <= use.first < following
        ]
        if not going:
            return
        with self._writing() as connection:
            connection.execute(
                "DELETE FROM key_use WHERE timestamp NOT BETWEEN ? AND ?",
                (now_ms - KEPT_MS, now_ms + KEPT_MS),
            )
            rows = [(*values, _checksum(values)) for values in going]
            connection.executemany("INSERT OR REPLACE INTO key_use VALUES (?, ?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with (
            self._usable(),
            closing(sqlite3.connect(self._path)) as connection,
            connection,
        ):
            connection.execute("PRAGMA synchronous = EXTRA")  # the folder, too
            connection.execute(_SCHEMA)
            columns = connection.execute("SELECT * FROM key_use LIMIT 0").description
            if len(columns) == len(_COLUMNS):  # made by an earlier release
                connection.execute("ALTER TABLE key_use ADD COLUMN checksum INTEGER")
            yield connection

    @contextmanager
    def _usable(self) -> Iterator[None]:
        """Raise DamagedMempool instead of SQLite's errors, and say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise DamagedMempool(
                f"{self._path} cannot be used: {error}; if the disk is sound the file is damaged: "
                "remove it, and keys of the last day may be used twice"
            ) from error


def _sound_rows(connection: sqlite3.Connection) -> int:
    """How many keys there are. Raises sqlite3.DatabaseError if anything is wrong with the file."""
    for (problem,) in connection.execute("PRAGMA integrity_check(1)"):
        if problem != "ok":
            raise sqlite3.DatabaseError(problem)
    return len([_use_in(row) for row in connection.execute("SELECT * FROM key_use")])


def _use_in(row: Sequence[Any]) -> KeyUse:
    """The use in a row of the table. Raises sqlite3.DatabaseError if the row was changed."""
    values, found = tuple(row[: len(_COLUMNS)]), row[len(_COLUMNS) :]
    if found and found[0] not in {None, _checksum(values)}:  # rows of earlier releases have none
        raise sqlite3.DatabaseError(f"key {values[0]!r} does not agree with its checksum")
    return KeyUse(*values[1:])


def _checksum(values: tuple[object, ...]) -> int:
    return zlib.crc32(repr(values).encode())
