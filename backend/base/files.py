"""Makes bytes durable, as no other module does, and has the locks between processes.

Every function raises WriteFailed when the disk refuses. After that the caller must stop writing and
be restarted: the kernel may have dropped the bytes and will report the same sync as done next time,
so nothing here retries.
"""

import errno
import fcntl
import mmap
import os
import pwd
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from threading import get_native_id

from backend.base.errors import TryLater, WriteFailed, WriterBusy

LOCK_MODE = 0o600
LOCK_PATIENCE_S = 5.0
PIECE_BYTES = 2**20  # that are written again together
MOMENT_S = 0.5  # how long who does not wait for a lock tries to get it
REMEDIES = {
    errno.EROFS: "mount its disk for writing",
    errno.ENOSPC: "free some space on its disk",
    errno.EIO: "check that its disk is plugged in and sound",
}
USE_EXT4 = "a ledger needs symbolic links, which FAT, exFAT and shares of SMB lack; use ext4"
FSTAB = Path("/etc/fstab")
# Python does not see that a folder is mounted at another of the same disk (`bind`).
_MOUNT_POINT = re.compile(r"^[^#\s]\S*\s+(/\S*)(?!.*bind)", re.MULTILINE)
LOCKED = (BlockingIOError, PermissionError)  # the second is what a share of SMB says
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.00005, 0.01


@contextmanager
def refusals(what: str, path: Path | str, remedy: str = "") -> Iterator[None]:
    """Raise WriteFailed, "cannot WHAT PATH: …", for what the system refuses inside.

    remedy: as in `reason_of`.
    """
    try:
        yield
    except OSError as error:
        raise WriteFailed(f"cannot {what} {reason_of(error, path, remedy)}") from error


def reason_of(error: Exception, path: Path | str, remedy: str = "") -> str:
    """Say why a file cannot be used, "PATH: reason; remedy".

    remedy: for any error but of a disk, or of a user who may not use the file: it is not lost then.
    """
    number = error.errno if isinstance(error, OSError) else None
    remedy = REMEDIES.get(number or 0, remedy)
    if isinstance(error, PermissionError) and not (remedy and number == errno.EPERM):
        remedy = access_remedy(Path(path))
    reason = (error.strerror if isinstance(error, OSError) else "") or error
    return f"{path}: {reason}{remedy and f'; {remedy}'}"


def access_remedy(path: Path) -> str:
    """Say how this user gets to use a file, or to make it in a folder, of another user.

    The other one may be that of the service, which must not lose a file of its ledger.
    """
    user = _name_of(os.geteuid())
    try:
        status = path.stat()
    except OSError:
        folder = next(filter(os.path.isdir, path.absolute().parents))  # below a closed one, none is
        is_seen = os.access(folder, os.X_OK, effective_ids=True)  # so the path is not there
        mounted = "is the disk mounted? If it is, " if is_seen else ""
        return (
            f"user {user} may not use the folder {folder}; {mounted}allow it, or use another folder"
        )
    bits, all_in = ("u+rwx", "-R ") if stat.S_ISDIR(status.st_mode) else ("u+rw", "")
    if status.st_uid == os.geteuid():
        return f"user {user} may not use it; run `sudo chmod {bits} {quote(str(path))}`"
    return (
        f"user {user} may not use it; run this as {_name_of(status.st_uid)}, who owns it, or take "
        f"it over: `sudo chown {all_in}{user} {quote(str(path))}`"
    )


def _name_of(user: int) -> str:
    with suppress(KeyError):  # a container may have users without names
        return pwd.getpwuid(user).pw_name
    return str(user)


def write_at(descriptor: int, data: bytes, offset: int, path: Path) -> None:
    """Write all of `data` at `offset`."""
    with refusals("write", path):
        while data:
            written = os.pwrite(descriptor, data, offset)
            data, offset = data[written:], offset + written


def sync(descriptor: int, path: Path) -> None:
    """Return only when what was written to `descriptor`, and its size, is on the disk."""
    with refusals("sync", path):
        os.fdatasync(descriptor)


def sync_folder(folder: Path) -> None:
    """Return only when the names in `folder` are on the disk."""
    with refusals("sync", folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make `folder` and its parents, durably."""
    if folder.is_dir():
        return
    if place := _unmounted(folder):
        raise WriteFailed(f"cannot make {folder}: nothing is mounted at {place}; mount its disk")
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    for link in filter(Path.is_symlink, missing):
        raise WriteFailed(
            f"cannot make {folder}: the link {link} leads to {link.readlink()}, which does not "
            "exist; mount its disk"
        )
    with refusals("make", folder):
        folder.mkdir(parents=True, exist_ok=True)
    for new in missing:
        sync_folder(new.parent)


def _unmounted(folder: Path) -> str:
    """Return where the disk of `folder` is to be mounted; "" if it is, or no table says so.

    What is written into an empty mount point is on another disk, and hidden later.
    """
    places: list[str] = []
    with suppress(OSError):
        places = _MOUNT_POINT.findall(FSTAB.read_text(encoding="utf-8", errors="replace"))
    above = filter(Path(os.path.realpath(folder)).is_relative_to, places)
    return next((place for place in above if not os.path.ismount(place)), "")


def require_links(folder: Path) -> None:
    """Raise WriteFailed unless the disk of `folder` can hold an index, which is used by a link.

    SQLite's own words on a share of SMB would be "database is locked".
    """
    with refusals("make a link in", folder, USE_EXT4), TemporaryDirectory(dir=folder) as new:
        Path(new, "link").symlink_to(folder)  # others may ask the same at the same time


def open_for_writing(path: Path) -> int:
    """Open `path` to read and write it; it is made if it is not there. Returns a descriptor.

    Its name is on the disk then, even if whoever made the file died before it could sync that.
    """
    with refusals("open", path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        sync_folder(path.parent)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sync_file(path: Path) -> None:
    """Sync a file, whoever has written it."""
    descriptor = open_for_writing(path)
    try:
        sync(descriptor, path)
    finally:
        os.close(descriptor)


def open_existing(path: Path) -> int:
    """Open a file that is there to read and write it, or to read it alone if we may do no more.

    Raises OSError.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in {errno.EROFS, errno.EACCES, errno.EPERM}:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def read_at(descriptor: int, length: int, offset: int, path: Path) -> bytes:
    """Read up to `length` bytes from `offset` on."""
    with refusals("read", path):
        return os.pread(descriptor, length, offset)


def write_again(descriptor: int, path: Path, start: int = 0) -> None:
    """Write what a file holds from `start` on over itself, so that the next sync writes all of it.

    The kernel reports a sync that failed to each descriptor that was open then, and to nobody who
    opens the file later: it takes the lost bytes for written, and no later sync writes them. ext4
    has found places for them and noted that these hold nothing yet; the note would stay, and zeros
    be read after a power cut, if the kernel did not forget the bytes first.
    """
    size = os.fstat(descriptor).st_size
    for offset in range(start - start % mmap.PAGESIZE, size, PIECE_BYTES):
        data = read_at(descriptor, PIECE_BYTES, offset, path)
        with refusals("write", path):
            forget_cached(descriptor, offset, len(data))
        write_at(descriptor, data, offset, path)


def forget_cached(descriptor: int, offset: int = 0, length: int = 0) -> None:
    """Have the kernel forget a range of a file, so that the next reading asks the disk.

    length: 0 for all to the end. What was just written, or is in use, may stay all the same. Raises
    OSError.
    """
    start = offset - offset % mmap.PAGESIZE  # only whole pages can be forgotten
    end = offset + length + mmap.PAGESIZE - 1 if length else start
    os.posix_fadvise(descriptor, start, end - start, os.POSIX_FADV_DONTNEED)


def cut(descriptor: int, size: int, path: Path) -> None:
    """Cut a file to `size` bytes, durably."""
    with refusals("cut", path):
        os.ftruncate(descriptor, size)
    sync(descriptor, path)


def write_new(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file that is there whole or not at all: temporary file, sync, rename, sync."""
    temporary = path.with_name(path.name + ".tmp")
    with refusals("write", temporary):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_at(descriptor, data, 0, temporary)
        sync(descriptor, temporary)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    rename(temporary, path)


def replace_unsynced(path: Path, data: bytes) -> None:
    """Write a small file that readers see whole, and that may be lost with the power.

    Processes and threads may write it at the same time.
    """
    temporary = path.with_name(f"{path.name}.{get_native_id()}.tmp")
    with refusals("write", path):
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise


def rename(path: Path, new: Path) -> None:
    """Rename a file, durably; `new` is replaced if it is there."""
    with refusals("rename", path):
        path.replace(new)
    sync_folder(new.parent)


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    with refusals("remove", path), suppress(FileNotFoundError):
        path.unlink()


def free_bytes(folder: Path) -> int:
    """Return how many bytes on the disk of `folder` are left for us."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def require_room(folder: Path, wanted: int) -> None:
    """Raise WriteFailed if the disk of `folder` has less than `wanted` bytes left for a copy."""
    free = free_bytes(folder)
    if free < wanted:
        reason = f"the disk of {folder} has {free:,} bytes free, but {wanted:,} are needed"
        raise WriteFailed(f"{reason}; free some space")


def require_free(folder: Path, least_free: int, size: int = 0, free: int | None = None) -> None:
    """Raise TryLater if the disk of `folder` has less than `least_free` left besides `size` bytes.

    least_free: a setting, or 0. free: how many bytes are left, if that was just asked.
    """
    free = free_bytes(folder) if free is None else free
    if free < least_free + size:
        lower = ", or lower FLIGHTCHAIN_MIN_FREE_BYTES" if least_free and free > size else ""
        raise TryLater(
            f"the disk of {folder} has too little room: {free:,} bytes are free, "
            f"{least_free + size:,} are needed; free some space{lower}",
            retry_after_s=60,
        )


class FileLock:
    """An exclusive lock between processes (flock) on a file of its own.

    The system frees it when its holder dies, however it dies. A stopped holder keeps it, so nobody
    waits for it without end. Only the file's owner may open it: whoever can open it can hold it.
    It is neither re-entrant nor a lock between threads.
    """

    def __init__(self, path: Path, *, waits: bool = True, remedy: str = "") -> None:
        """waits: whether `with` waits for the lock, as `acquire` says.

        remedy: says who may have it, and what to do then.
        """
        self.path = path
        self._remedy = remedy and f"; {remedy}"
        self._waits = waits
        self._descriptor: int | None = None

    def acquire(self, *, wait: bool, within_s: float = LOCK_PATIENCE_S) -> None:
        """Take the lock. Raises WriterBusy if it is taken and stays so.

        wait: whether to wait for `within_s` seconds. Otherwise it waits a moment, because
        `is_locked` may hold the lock.
        """
        with refusals("open", self.path):
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, LOCK_MODE)
        try:
            with refusals("lock", self.path, "keep it on a file system with locks, such as ext4"):
                lock_within(descriptor, within_s if wait else MOMENT_S, self.path, self._remedy)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    @property
    def is_held(self) -> bool:
        return self._descriptor is not None

    def keeps_others_out(self) -> bool:
        """Return whether it is held, and nobody has removed its file: others would lock another."""
        return self._descriptor is not None and is_at(self._descriptor, self.path)

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # a forked child may hold a copy
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "FileLock":
        self.acquire(wait=self._waits)
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file still has the name under which it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def lock_within(descriptor: int, seconds: float, path: Path, remedy: str = "") -> None:
    """Lock an open file (flock), within so many seconds. Raises WriterBusy, which says who has it.

    remedy: the end of that message.

    The kernel's own wait knows no bound that threads could use, so this asks again and again: soon
    at first, because those who share work hold a lock for a fraction of a millisecond.
    """
    deadline, pause_s = 0.0, FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except LOCKED:
            now = time.monotonic()
            deadline = deadline or now + seconds
            if now >= deadline:
                holder = _holder_of(descriptor)
                raise WriterBusy(f"{path} is locked by {holder}{remedy}") from None
            time.sleep(pause_s)
            pause_s = min(1.05 * pause_s, LONGEST_PAUSE_S)
        else:
            return


def _holder_of(descriptor: int) -> str:
    """Return who holds the flock on an open file, in words."""
    status = os.fstat(descriptor)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux, or hidden
        lines = []
    fields = [line.split() for line in lines]
    pids = [lock[4] for lock in fields if lock[1] == "FLOCK" and lock[5] == device]
    if not pids or int(pids[0]) <= 0:
        return "another process"
    return f"{'this' if int(pids[0]) == os.getpid() else 'another'} process (PID {pids[0]})"


def is_locked(path: Path) -> bool:
    """Return whether some process holds the FileLock on `path` now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except LOCKED:
        return True
    finally:
        os.close(descriptor)
    return False
