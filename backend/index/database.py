"""The index files: their names, how they are opened, where an index stands.

Each index that is made gets a file of its own, `index/index-N.sqlite`. The symbolic link
`index/index.sqlite` names the one in use and is replaced in one step, so that readers always find a
complete index, and never the write-ahead log of another.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from backend.errors import TryLater
from backend.storage import files

FOLDER = "index"
LINK_NAME = "index.sqlite"

SCHEMA_VERSION = 2
READER_CACHE_KIB = 4096

# Result codes of SQLite: the file is wrong; a table is not there; a row stands in the way.
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_INDEX = _CORRUPT | {sqlite3.SQLITE_ERROR}
_WRONG = _NO_INDEX | {sqlite3.SQLITE_CONSTRAINT}


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


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether SQLite found the file itself to be wrong, rather than busy or unreadable."""
    return _is_among(error, _CORRUPT)


def is_wrong(error: sqlite3.Error) -> bool:
    """Whether making the index anew would help: it is corrupt, or its tables or rows are wrong."""
    return _is_among(error, _WRONG)


def _is_among(error: sqlite3.Error, codes: frozenset[int]) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # errors of Python's module have none
    return code is not None and code & 0xFF in codes


def open_to_read(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises sqlite3.OperationalError if there is no file."""
    connection = sqlite3.connect(
        path.absolute().as_uri() + "?mode=ro", uri=True, isolation_level=None,
        check_same_thread=False,
    )  # fmt: skip
    try:
        connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        connection.execute("PRAGMA query_only = 1")
    except BaseException:
        connection.close()
        raise
    return connection


def position_in(connection: sqlite3.Connection) -> Position | None:
    """Where the index stands; None if it is of another schema or no index at all.

    Raises sqlite3.Error if that cannot be told now.
    """
    try:
        row = connection.execute(
            "SELECT genesis_hash, height, tip_hash, transactions FROM position"
            " WHERE schema_version = ?",
            (SCHEMA_VERSION,),
        ).fetchone()
    except sqlite3.DatabaseError as error:
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
    except sqlite3.Error as error:
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
