"""Names and opens index files, and tells where an index stands and how that differs from the chain.

Every page of a file carries a checksum, which `backend.storage.checked_sqlite` explains. This
module is the only one that opens index files.

Pages in the write-ahead log have no such checksum. The log has its own, which SQLite compares when
the first process opens it, and the writer before it brings the log into the file (`open_apart`). A
log is there only while the index is being written to, and after a crash.

Each index that is made gets a file of its own, `index/index-N.sqlite`. The symbolic link
`index/index.sqlite` names the one in use and is replaced in one step, so that readers always find a
complete index, and never the write-ahead log of another.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from backend.base import files
from backend.base.errors import NotFound, TryLater
from backend.base.words import counted
from backend.chain.fields import Value
from backend.index import damage_mark
from backend.storage import checked_sqlite
from backend.storage.block_store import BlockStore
from backend.storage.checked_sqlite import (
    Wrong,
    closed_on_error,
    in_words,
    require_checksums,
)

Rows = Callable[[str, Sequence[object]], list[Any]]  # statement, values -> all its rows
Place = tuple[Value, Value, Value, Value]  # of table place: DOT number, code, city, state

FOLDER = "index"
LINK_NAME = "index.sqlite"

SCHEMA_VERSION = 9
OUTDATED = "it was made by an earlier release"
READER_CACHE_KIB = 4096

# Result codes of SQLite that say that the file is wrong.
_WRONG = frozenset(
    {
        apsw.SQLITE_CORRUPT,
        apsw.SQLITE_NOTADB,
        apsw.SQLITE_IOERR_DATA,  # a checksum that is not the page's
        apsw.SQLITE_IOERR_READ,
        apsw.SQLITE_IOERR_SHORT_READ,
        apsw.SQLITE_IOERR_CORRUPTFS,
        apsw.SQLITE_ERROR,  # a table is not there
        apsw.SQLITE_CONSTRAINT,  # a row stands in the way
    }
)
_POSITION = "SELECT schema_version, genesis_hash, height, tip_hash, transactions FROM position"


@dataclass(frozen=True, slots=True)
class Position:
    """The block up to which an index stands."""

    genesis_hash: str
    height: int
    tip_hash: str
    transactions: int


class Outdated(Wrong):
    """The index was made by an earlier release, with another schema."""


def index_path(folder: Path) -> Path:
    """Return the index of the chain in `folder`: a link to the file in use."""
    return folder / FOLDER / LINK_NAME


def is_wrong(error: apsw.Error | OSError) -> bool:
    """Return whether rebuilding the index would help: the file, its tables or its rows are wrong.

    If not, the index is busy or out of reach, or cannot be written.
    """
    if isinstance(error, Wrong):
        return True
    code = getattr(error, "extendedresult", None)  # misuse of the Python module has none
    return code is not None and not _WRONG.isdisjoint({code, code & 0xFF})


def unreadable(error: apsw.Error | OSError, retry_after_s: int = 1) -> TryLater:
    """Return what to raise if the index is busy or out of reach."""
    return TryLater(f"the index cannot be read ({in_words(error)})", retry_after_s)


def open_to_read(path: Path) -> apsw.Connection:
    """Return a connection that cannot write.

    Raises apsw.Error, for instance if there is no file.
    """
    if is_frozen(path):
        connection = checked_sqlite.connect_frozen(path)
    else:
        connection = checked_sqlite.connect(path, apsw.SQLITE_OPEN_READONLY, "?mode=ro")
    with closed_on_error(connection):
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        connection.execute("PRAGMA query_only = 1")
        require_checksums(connection)
    return connection


def is_frozen(path: Path) -> bool:
    """Return whether the index at `path` must be read without SQLite's locks.

    They are in a file that SQLite makes beside it, which cannot be done on a read-only medium.
    Whoever reads so must look whether the file has changed meanwhile: SQLite does not.
    """
    return not os.access(path.parent, os.W_OK) and checked_sqlite.can_be_frozen(path)


def open_to_write(path: Path) -> apsw.Connection:
    """Return a connection to the index at `path`; an empty one is made if there is none.

    Raises apsw.Error.
    """
    is_new = not path.exists()
    connection = checked_sqlite.connect(path, checked_sqlite.WRITE_OR_MAKE)
    with closed_on_error(connection):
        if is_new:
            checked_sqlite.reserve_checksums(connection)
            connection.execute("PRAGMA journal_mode = WAL")
        require_checksums(connection)
    return connection


def open_apart(path: Path) -> apsw.Connection:
    """Return a connection that reads the log again, up to the first page that has not its checksum.

    It takes no locks, and closing it drops those that this process has on the file itself. So it is
    for the one process that writes, whose file nobody else would remove. Raises apsw.Error.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(path.as_uri() + "?mode=ro", flags=flags, vfs="unix-none")
    with closed_on_error(connection):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # not what others have read of it
    return connection


def position_in(connection: apsw.Connection) -> Position | None:
    """Return where the index stands; None if it holds no block yet.

    Raises apsw.Error: Wrong if it is of another schema, Outdated if that is an earlier one.
    """
    row: Any = connection.execute(_POSITION).fetchone()
    if row is None:
        return None
    schema_version, *position = row
    if schema_version < SCHEMA_VERSION:
        raise Outdated(OUTDATED)
    if schema_version != SCHEMA_VERSION:
        raise Wrong(f"it has version {schema_version} of the schema, not {SCHEMA_VERSION}")
    return Position(*position)


def difference_from(store: BlockStore, position: Position | None) -> str | None:
    """Return how an index at `position` differs from the chain in `store`; None if it agrees.

    An index may be behind the chain, but not ahead of it, nor on another branch. Raises Damage if
    the chain cannot be read there.
    """
    if position is None:
        return "it holds no block"
    try:
        genesis, there = store.place(0), store.place(position.height)
    except NotFound:
        return f"it stands at block {position.height}, and the chain ends at {store.height()}"
    if genesis.hash.hex() != position.genesis_hash:
        return f"it is of another chain: its block 0 is {position.genesis_hash}"
    if there.hash.hex() != position.tip_hash:
        return f"it is on another branch: its block {position.height} is {position.tip_hash}"
    if there.next_transaction != position.transactions:
        return f"it holds {counted(position.transactions, 'flight')} at block {position.height}"
    return None


def new_file(folder: Path) -> Path:
    """Return a name for an index to be made in `folder` (the chain's) that none ever had there."""
    numbers = [
        int(path.stem.removeprefix("index-"))
        for path in (folder / FOLDER).glob("index-*.sqlite")
        if path.stem.removeprefix("index-").isdigit()
    ]
    return folder / FOLDER / f"index-{max(numbers, default=0) + 1}.sqlite"


def use(path: Path) -> None:
    """Make the complete index at `path` the one in use; remove all others and any damage mark."""
    link = path.with_name(LINK_NAME)
    temporary = link.with_name(f"{LINK_NAME}.tmp")
    with files.refusals("link", link, files.USE_EXT4):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(path.name)
    files.rename(temporary, link)
    files.remove(path.with_name(damage_mark.NAME))
    remove_all_but(path)


def remove_all_but(used: Path) -> None:
    """Remove every index file beside `used`, and what SQLite keeps beside them."""
    for other in used.parent.glob("index-*.sqlite*"):
        if not other.name.startswith(used.name):
            files.remove(other)
