"""Idempotency keys: what a client sends with a request that it may have to send again.

A key stands in the record of the mempool that it came with, and in the memory of every process that
has read the record, while its segment is there. Before the segment is removed its keys are kept in
`mempool/keys.sqlite`, which is synced first; after a day they are forgotten. So a key is durable
exactly as its flights are.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.errors import DamagedMempool, KeyReused, WriteFailed

KEPT_MS = 24 * 60 * 60 * 1000
FILE_NAME = "keys.sqlite"
FORGETTING = "if it is removed, keys of the last day may be used twice"

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS key_use (
        key        TEXT PRIMARY KEY,
        body_hash  TEXT NOT NULL,
        first      INTEGER NOT NULL,
        count      INTEGER NOT NULL,
        timestamp  INTEGER NOT NULL
    ) WITHOUT ROWID"""


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

    def find(self, key: IdempotencyKey, now_ms: int) -> KeyUse | None:
        """What `key` was used for in the last day.

        Raises KeyReused if it came with something else, DamagedMempool if the file is unreadable.
        """
        use = self._in_log.get(key.text) or self._kept(key.text)
        if use is None or now_ms - use.timestamp > KEPT_MS:
            return None
        if use.body_hash != key.body_hash:
            raise KeyReused(key.text, use.first)
        return use

    def _kept(self, text: str) -> KeyUse | None:
        if not self._path.exists():
            return None
        try:
            with closing(sqlite3.connect(self._path)) as connection:
                sql = "SELECT body_hash, first, count, timestamp FROM key_use WHERE key = ?"
                row = connection.execute(sql, (text,)).fetchone()
        except sqlite3.Error as error:
            raise DamagedMempool(f"{self._path}: {error}; {FORGETTING}") from error
        return None if row is None else KeyUse(*row)

    def keep(self, first: int, following: int) -> None:
        """Keep the keys of ids from `first` to `following` (exclusive): their records will go.

        Raises WriteFailed.
        """
        going = [(t, use) for t, use in self._in_log.items() if first <= use.first < following]
        if not going:
            return
        rows = [(t, use.body_hash, use.first, use.count, use.timestamp) for t, use in going]
        newest = max(use.timestamp for _, use in going)
        with self._writing() as connection:
            connection.execute("DELETE FROM key_use WHERE timestamp < ?", (newest - KEPT_MS,))
            connection.executemany("INSERT OR REPLACE INTO key_use VALUES (?, ?, ?, ?, ?)", rows)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path)) as connection, connection:
                connection.execute("PRAGMA synchronous = EXTRA")  # the folder, too
                connection.execute(_SCHEMA)
                yield connection
        except sqlite3.Error as error:
            raise WriteFailed(f"{self._path}: {error}") from error


def kept_keys(folder: Path, below: int | None = None) -> bytes | None:
    """What the file of kept keys in `folder` holds at one moment, as such a file; None without one.

    below: keys of ids from there on are left out. Raises DamagedMempool.
    """
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        with (
            closing(sqlite3.connect(path)) as connection,
            closing(sqlite3.connect(":memory:")) as copied,
        ):
            connection.backup(copied)
            (problem,) = copied.execute("PRAGMA integrity_check(1)").fetchone()
            if problem != "ok":
                raise DamagedMempool(f"{path}: {problem}; {FORGETTING}")
            if below is not None:
                with copied:
                    copied.execute(_SCHEMA)
                    copied.execute("DELETE FROM key_use WHERE first >= ?", (below,))
            return copied.serialize()
    except sqlite3.Error as error:
        raise DamagedMempool(f"{path}: {error}; {FORGETTING}") from error
