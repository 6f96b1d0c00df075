"""Damages the mempool of a ledger, in one record alone or in whole pages of its file."""

from contextlib import closing
from pathlib import Path

import apsw

from backend.mempool import FOLDER, database

PAGE_BYTES = 4096


def store_path(folder: Path) -> Path:
    """The mempool's file in the folder of a chain."""
    return folder / FOLDER / database.FILE_NAME


def spoil(folder: Path, *firsts: int) -> None:
    """Change the records with these first ids, as a flip in SQLite's write-ahead log does.

    Nothing but their digests can tell.
    """
    with closing(database.connected(store_path(folder))) as connection:
        for first in firsts:
            connection.execute("UPDATE record SET flights = x'3f' WHERE first = ?", (first,))
            assert connection.changes() == 1


def spoil_key(folder: Path, text: str) -> None:
    """Change what is kept of one key, as a flip in SQLite's write-ahead log does."""
    with closing(database.connected(store_path(folder))) as connection:
        connection.execute("UPDATE key_use SET first = first + 1 WHERE key = ?", (text,))
        assert connection.changes() == 1


def spoil_keys(folder: Path) -> None:
    """Change the page of the table of keys, which is small, so that its checksum is wrong."""
    path = store_path(folder)
    settle(path)
    with closing(apsw.Connection(str(path))) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'key_use'").get
    overwrite(path, root * PAGE_BYTES - 100, b"garbage")


def settle(path: Path) -> None:
    """Let all that was written be in the one file."""
    assert database.empty_log(path)


def overwrite(path: Path, at: int, data: bytes) -> None:
    """Write into the very file, which a process may have open."""
    with path.open("r+b") as stream:
        stream.seek(at)
        stream.write(data)
