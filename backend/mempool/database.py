"""Makes and opens the one SQLite file of the mempool, and turns SQLite's errors into ours.

    record     accepted flights: those in no block, and a few more (`records`)
    key_use    idempotency keys, for a day
    ledger     one row: the hash of block 0, which names the ledger that the file belongs to

Pages of the file carry checksums (`storage.checked_sqlite`). SQLite reads its write-ahead log
without comparing anything, so rows carry digests, and what the log has lost is noticed by the
watermark. The log is never copied into the file but under the lock between processes, whole, and
is emptied then: a part of it that outlived its beginning would be taken for all of it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw

from backend.base.errors import DamagedMempool, NeedsRepair, TryLater
from backend.mempool.idempotency_keys import KeyUse
from backend.mempool.records import Record, Unsound
from backend.storage import checked_sqlite

FILE_NAME = "mempool.sqlite"
NEW_NAME = f"{FILE_NAME}.new"  # is complete, and takes the place of the other
COPY_FORM = re.compile(r"copy-[0-9a-f]{32}\.sqlite", re.ASCII)  # see `copy_name`

_APPLICATION = 0x46434D50  # "FCMP"
_VERSION = 2  # no release wrote 1
_PAGE_BYTES = 4096
_PATIENCE_MS = 100  # with a reader that was stopped in the middle of reading
_SCHEMA = f"""
    PRAGMA application_id = {_APPLICATION};
    PRAGMA user_version = {_VERSION};
    CREATE TABLE ledger (genesis TEXT NOT NULL);
    CREATE TABLE record (
        first      INTEGER PRIMARY KEY,
        count      INTEGER NOT NULL,
        timestamp  INTEGER NOT NULL,
        mined      INTEGER NOT NULL,
        flights    BLOB NOT NULL,
        digest     BLOB NOT NULL
    );
    CREATE TABLE key_use (
        key        TEXT PRIMARY KEY,
        body_hash  TEXT NOT NULL,
        first      INTEGER NOT NULL,
        count      INTEGER NOT NULL,
        timestamp  INTEGER NOT NULL,
        digest     BLOB NOT NULL
    ) WITHOUT ROWID"""
INSERT_RECORD = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)"
INSERT_KEY = "INSERT OR REPLACE INTO key_use VALUES (?, ?, ?, ?, ?, ?)"
_DAMAGE_IN_IO = {apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS}
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, checked_sqlite.Wrong)


def damage_in(error: apsw.Error) -> str:
    """Return what is wrong with the content, or "" if it only cannot be read or written now."""
    code = getattr(error, "extendedresult", None)
    if code == apsw.SQLITE_IOERR_DATA:  # SQLite has no words for it
        return "a page does not agree with its checksum"
    return str(error) if isinstance(error, _DAMAGE) or code in _DAMAGE_IN_IO else ""


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn errors while `path` is read into NeedsRepair if it is damaged, else into TryLater."""
    try:
        yield
    except Unsound as error:
        raise NeedsRepair(f"{path} is damaged: {error}") from error
    except apsw.Error as error:
        if damage := damage_in(error):
            raise NeedsRepair(f"{path} is damaged: {damage}") from error
        raise TryLater(
            f"{path} cannot be read now: {checked_sqlite.in_words(error)}; until it can be read, "
            "pending flights are unknown and nothing is accepted"
        ) from error


def connected(path: Path) -> apsw.Connection:
    """Open the file for reading and writing, or for reading alone if we may do no more.

    Raises apsw.Error.
    """
    try:
        return _configured(checked_sqlite.connect(path))
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        if not checked_sqlite.can_be_frozen(path):
            raise
        return _configured(checked_sqlite.connect_frozen(path))


def _configured(connection: apsw.Connection) -> apsw.Connection:
    with checked_sqlite.closed_on_error(connection):
        # Who closes the file last leaves it and its log as they are: others may be in their places.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    return connection


def require_ours(connection: apsw.Connection, path: Path, genesis: str) -> str:
    """Return the name of the ledger in the file.

    genesis: the name of this ledger, or "" if it has none yet. Raises DamagedMempool if the file is
    another ledger's, or of another format, and apsw.Error if it is damaged.
    """
    if connection.execute("PRAGMA application_id").get != _APPLICATION:
        raise checked_sqlite.Wrong("it is empty, or holds something else than a mempool")
    version = connection.execute("PRAGMA user_version").get
    if version != _VERSION:
        raise DamagedMempool(
            f"{path} has format {version}, but this release reads format {_VERSION}. Nothing is "
            "accepted or mined: run the version that wrote it until nothing is pending, then move "
            "the file away"
        )
    checked_sqlite.require_checksums(connection)
    named = str(connection.execute("SELECT genesis FROM ledger").get)
    others = {named, *_named_without_log(connection)} - {genesis, ""}
    if genesis and others:
        raise DamagedMempool(
            f"{path} belongs to another ledger: its block 0 is {others.pop()}, this ledger's is "
            f"{genesis}. Nothing is accepted or mined: put this ledger's own file back. Without "
            "it, move the wrong file away; the acknowledged flights that are lost are then named"
        )
    return named


def _named_without_log(connection: apsw.Connection) -> list[str]:
    """Return the names of ledgers in the file itself, which the log over it may say otherwise."""
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'ledger'").get
    _, page = connection.read("main", 0, (root - 1) * _PAGE_BYTES, _PAGE_BYTES)
    return [name.decode() for name in re.findall(rb"[0-9a-f]{64}", page)]


def copy_name(data: bytes) -> str:
    """Return the name of a copy with these bytes, while a backup is not complete."""
    return f"copy-{blake2b(data, digest_size=16).hexdigest()}.sqlite"


def write_file(
    path: Path, genesis: str, records: Iterable[Record], keys: Mapping[str, KeyUse]
) -> None:
    """Make a new file at `path`, which must have no write-ahead log. Raises WriteFailed."""
    with checked_sqlite.new_file(path) as connection:
        connection.execute(_SCHEMA)
        with connection:
            connection.execute("INSERT INTO ledger VALUES (?)", (genesis,))
            connection.executemany(INSERT_RECORD, records)
            connection.executemany(INSERT_KEY, [key_row(*item) for item in keys.items()])
        connection.execute("PRAGMA journal_mode = WAL")


def key_row(text: str, use: KeyUse) -> tuple[Any, ...]:
    """Return the row of a key."""
    values = (text, *astuple(use))
    return (*values, blake2b(repr(values).encode(), digest_size=16).digest())


def keys_in(rows: Iterable[tuple[Any, ...]]) -> dict[str, KeyUse]:
    """Return the keys in rows of the table. Raises Unsound if a digest is wrong."""
    keys = {}
    for text, *values, digest in rows:
        keys[text] = KeyUse(*values)
        if digest != key_row(text, keys[text])[-1]:
            raise Unsound(f"the idempotency key {text} does not agree with its checksum")
    return keys


def empty_log(path: Path) -> bool:
    """Copy the write-ahead log into the file, and empty it. Returns whether nobody was in the way.

    Only under the lock between processes. Raises FlightchainError, apsw.Error.
    """
    with closing(_configured(checked_sqlite.connect(path))) as connection:
        connection.set_busy_timeout(_PATIENCE_MS)
        connection.execute("PRAGMA synchronous = FULL")
        try:
            row: Any = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except apsw.BusyError:
            return False
        return not row[0]
