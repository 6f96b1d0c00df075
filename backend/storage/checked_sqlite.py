"""Opens SQLite files of which every page carries a checksum that is compared at each reading.

So no answer comes from a page that is not as it was written: not from a row that has changed, and
not from a damaged tree in which a row is looked for at the wrong place. The comparing is done by
SQLite's checksum VFS, which comes with apsw and not with Python's sqlite3; the two must never have
the same file open in one process, because each would drop the other's locks.

Pages in a write-ahead log or in a rollback journal have no such checksum.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from errno import ENOSPC
from pathlib import Path

import apsw
import apsw.sqlite_extra

from backend.base import files

BUSY_TIMEOUT_MS = 5000
WRITE_OR_MAKE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

_CHECKSUM_BYTES = 8  # at the end of each page
_CHECKSUM_VFS = "cksmvfs"
_PAGE_BYTES = 4096  # SQLite's default


class Wrong(apsw.Error):
    """The content of a file makes no sense, which is as bad as what SQLite itself finds wrong."""


def connect(
    path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE, query: str = ""
) -> apsw.Connection:
    """Open a connection that checks every page it reads, for one thread at a time.

    query: of the file's address, as SQLite has it. Nothing of a file without checksums is checked;
    `require_checksums` tells. Raises apsw.Error.
    """
    uri, flags = f"{path.absolute().as_uri()}{query}", flags | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(uri, flags=flags, vfs=_CHECKSUM_VFS)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    return connection


@contextmanager
def new_file(path: Path) -> Iterator[apsw.Connection]:
    """Make a whole and synced file beside `path`, which is moved there in the end.

    `path` must have no write-ahead log. Raises WriteFailed.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    files.remove(temporary)
    with files.refusals("write", temporary):
        try:
            with closing(_connect_alone(temporary, WRITE_OR_MAKE)) as connection:
                reserve_checksums(connection)
                connection.execute("PRAGMA journal_mode = OFF").fetchall()
                connection.execute("PRAGMA synchronous = OFF")
                yield connection
        except apsw.Error as error:
            raise OSError(str(error)) from error
    files.sync_file(temporary)
    files.rename(temporary, path)


@contextmanager
def closed_on_error(connection: apsw.Connection) -> Iterator[None]:
    """Close a connection if what is done inside with it fails."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def connect_frozen(path: Path) -> apsw.Connection:
    """Open a file to read it without the locks and the file that SQLite shares between processes.

    Only where `can_be_frozen`. Raises apsw.Error.
    """
    if not log_bytes(path):
        return connect(path, apsw.SQLITE_OPEN_READONLY, "?mode=ro&immutable=1")
    return _connect_alone(path, apsw.SQLITE_OPEN_READONLY)


def _connect_alone(path: Path, flags: int) -> apsw.Connection:
    """Open a file that nobody else uses. Shares of SMB refuse the locks of SQLite."""
    connection = apsw.Connection(str(path.absolute()), flags=flags, vfs=_lockless.vfs_name)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()  # it keeps all in memory then
    return connection


def can_be_frozen(path: Path) -> bool:
    """Return whether a file can be read without locks: it has no log, or nobody can write there."""
    medium = os.statvfs(path.resolve().parent)
    return not log_bytes(path) or bool(medium.f_flag & os.ST_RDONLY)


def in_words(error: Exception, path: Path | None = None) -> str:
    """Return what SQLite or the system says of a file, and what to do if that is known.

    path: the file that was to be written.

    Even reading needs room there: for the file that readers share, which SQLite makes at the first.
    """
    full = (apsw.SQLITE_FULL, apsw.SQLITE_IOERR_SHMSIZE)
    is_full = getattr(error, "extendedresult", None) in full
    if isinstance(error, apsw.ReadOnlyError) and path and path.exists():
        is_disk_read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
        if not (is_disk_read_only or os.access(path, os.W_OK, effective_ids=True)):
            return f"{error}; {files.access_remedy(path)}"
    return f"database or disk is full; {files.REMEDIES[ENOSPC]}" if is_full else str(error)


def log_bytes(path: Path) -> int:
    """Return the size of the write-ahead log of the file at `path`; 0 without one."""
    file = path.resolve()
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size
    except FileNotFoundError:
        return 0


class _LocklessFile(apsw.VFSFile):
    """A file on which locks are not even asked for, as they would be refused on such a medium."""

    def xLock(self, level: int) -> None:  # noqa: N802  its name in apsw
        pass

    def xUnlock(self, level: int) -> None:  # noqa: N802
        pass


class _Lockless(apsw.VFS):
    """The checksum VFS, without locks."""

    vfs_name = "lockless"

    def __init__(self) -> None:
        super().__init__(self.vfs_name, base=_CHECKSUM_VFS)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _LocklessFile(_CHECKSUM_VFS, name, flags)


def reserve_checksums(connection: apsw.Connection) -> None:
    """Let the pages of an empty file have checksums, before anything is written into it."""
    connection.reserve_bytes("main", _CHECKSUM_BYTES)


def require_checksums(connection: apsw.Connection) -> None:
    """Raise Wrong for a file of which the VFS would check nothing, or not all.

    SQLite takes for zeros what is missing of a page that is cut short.
    """
    if str(connection.execute("PRAGMA checksum_verification").get) != "1":
        raise Wrong("its pages have no checksums")
    if Path(connection.filename).stat().st_size % _PAGE_BYTES:
        raise Wrong("its last page is cut short")


def _register_checksum_vfs() -> None:
    """Make the VFS known to SQLite, for the life of this process and of those it forks."""
    with closing(apsw.Connection(":memory:")) as connection:
        apsw.sqlite_extra.load(connection, "cksumvfs")


_register_checksum_vfs()
_lockless = _Lockless()  # now, before there are threads that would do so at the same time
