"""The index files: their names, how they are opened and checked, where an index stands.

Every page carries a checksum, which SQLite's checksum VFS compares whenever it reads one from the
file or its log, so that no answer comes from a page that is not as it was written. That VFS comes
with apsw and not with Python's sqlite3; the two must never have the same file open in one process,
because each would drop the other's locks. This module is the only one that opens index files.

Each index that is made gets a file of its own, `index/index-N.sqlite`. The symbolic link
`index/index.sqlite` names the one in use and is replaced in one step, so that readers always find a
complete index, and never the write-ahead log of another.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import apsw.sqlite_extra

from backend.errors import TryLater
from backend.storage import files

FOLDER = "index"
LINK_NAME = "index.sqlite"

SCHEMA_VERSION = 3
READER_CACHE_KIB = 4096
BUSY_TIMEOUT_MS = 5000

_CHECKSUM_BYTES = 8  # at the end of each page
_CHECKSUM_VFS = "cksmvfs"

# Result codes of SQLite: the file is wrong; a table is not there; a row stands in the way.
_CORRUPT = frozenset(
    {
        apsw.SQLITE_CORRUPT,
        apsw.SQLITE_NOTADB,
        apsw.SQLITE_IOERR_DATA,  # a checksum that is not the page's
        apsw.SQLITE_IOERR_READ,
        apsw.SQLITE_IOERR_SHORT_READ,
        apsw.SQLITE_IOERR_CORRUPTFS,
    }
)
_NO_INDEX = _CORRUPT | {apsw.SQLITE_ERROR}
_WRONG = _NO_INDEX | {apsw.SQLITE_CONSTRAINT}


class Wrong(apsw.Error):
    """What stands in an index makes no sense; as bad as what SQLite finds wrong itself."""


@dataclass(frozen=True, slots=True)
class Position:
    """The block up to which an index stands."""

    genesis_hash: str
    height: int
    tip_hash: str
    transactions: int


def index_path(folder: Path) -> Path:
    """The index of the chain in `folder`: a link to the file in use."""
    return folder / FOLDER / LINK_NAME


def is_corrupt(error: apsw.Error) -> bool:
    """Whether the file itself was found to be wrong, rather than busy or out of reach."""
    return _is_among(error, _CORRUPT)


def is_wrong(error: apsw.Error) -> bool:
    """Whether making the index anew would help: it is corrupt, or its tables or rows are wrong."""
    return _is_among(error, _WRONG)


def _is_among(error: apsw.Error, codes: frozenset[int]) -> bool:
    if isinstance(error, Wrong):
        return True
    code = getattr(error, "extendedresult", None)  # misuse of the Python module has none
    return code is not None and not codes.isdisjoint({code, code & 0xFF})


def open_to_read(path: Path) -> apsw.Connection:
    """A connection that cannot write. Raises apsw.Error, for instance if there is no file."""
    connection = connect(path.absolute().as_uri() + "?mode=ro", apsw.SQLITE_OPEN_READONLY)
    try:
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        connection.execute("PRAGMA query_only = 1")
        _require_checksums(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def open_to_write(path: Path) -> apsw.Connection:
    """A connection to the index at `path`; an empty one is made if there is none.

    Raises apsw.Error.
    """
    is_new = not path.exists()
    connection = connect(
        path.absolute().as_uri(), apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    )
    try:
        if is_new:
            connection.reserve_bytes("main", _CHECKSUM_BYTES)
            connection.execute("PRAGMA journal_mode = WAL")
        _require_checksums(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(uri: str, flags: int) -> apsw.Connection:
    """A connection whose pages are checked, for one thread at a time."""
    connection = apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI, vfs=_CHECKSUM_VFS)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


def _require_checksums(connection: apsw.Connection) -> None:
    """Raise Wrong for a file without checksums, of which the VFS would check nothing."""
    if not connection.execute("PRAGMA checksum_verification").get:
        raise Wrong("its pages have no checksums")


def _register_checksum_vfs() -> None:
    """Make the VFS known to SQLite, for the life of this process and of those it forks."""
    with closing(apsw.Connection(":memory:")) as connection:
        apsw.sqlite_extra.load(connection, "cksumvfs")


_register_checksum_vfs()  # now, before there are threads that would do so at the same time


def position_in(connection: apsw.Connection) -> Position | None:
    """Where the index stands; None if it is of another schema or no index at all.

    Raises apsw.Error if that cannot be told now.
    """
    try:
        row = connection.execute(
            "SELECT genesis_hash, height, tip_hash, transactions FROM position"
            " WHERE schema_version = ?",
            (SCHEMA_VERSION,),
        ).fetchone()
    except apsw.Error as error:
        if _is_among(error, _NO_INDEX):
            return None
        raise
    return None if row is None else Position(*row)


def position_of(path: Path) -> Position | None:
    """Where the index at `path` stands; None if there is no usable one.

    Raises TryLater if that cannot be told now.
    """
    if not path.exists():
        return None
    try:
        with closing(open_to_read(path)) as connection:
            return position_in(connection)
    except apsw.Error as error:
        if is_corrupt(error):
            return None
        raise TryLater(f"the index cannot be read ({error})") from error


def new_file(folder: Path) -> Path:
    """A name for an index to be made in `folder` (the chain's) that no index ever had there."""
    numbers = [
        int(path.stem.removeprefix("index-"))
        for path in (folder / FOLDER).glob("index-*.sqlite")
        if path.stem.removeprefix("index-").isdigit()
    ]
    return folder / FOLDER / f"index-{max(numbers, default=0) + 1}.sqlite"


def use(path: Path) -> None:
    """Make the complete index at `path` the one in use, and remove all others."""
    link = path.with_name(LINK_NAME)
    temporary = path.with_name(LINK_NAME + ".tmp")
    with files.refusals("link", link):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(path.name)
    files.rename(temporary, link)
    remove_all_but(path)


def remove_all_but(used: Path) -> None:
    """Remove every index file beside `used`, and what SQLite keeps beside them."""
    for other in used.parent.glob("index-*.sqlite*"):
        if not other.name.startswith(used.name):
            files.remove(other)
