"""Copies what is in no block: pending flights, what is left of lost ones, keys, tokens.

A segment of the mempool's log only grows, and is copied as far as it holds whole records. So an
earlier copy of it is the beginning of a later one. A segment that is gone when it is to be copied
was trimmed: its flights are in blocks, and its idempotency keys are in `keys.sqlite`.

Files with damaged bytes, which were kept when the log was put right, are copied, too. As long as a
file of lost flights is there, `verify` and `ready` name the flights, in a restored ledger as well.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from backend import tokens
from backend.errors import BackupRefused, DamagedMempool, NeedsRepair
from backend.mempool import FOLDER, Mempool
from backend.mempool.idempotency_keys import FILE_NAME as KEYS_NAME
from backend.mempool.idempotency_keys import Keys
from backend.mempool.segments import aside_in, lost_in
from backend.settings import Settings
from backend.storage import files
from backend.words import counted

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied.

    mempool, aside: the size in bytes of each segment, and of each file with damaged bytes.
    next_transaction: the id after the last one in the segments. new_bytes: how many bytes were
    written.
    """

    mempool: dict[str, int]
    aside: dict[str, int]
    next_transaction: int
    new_bytes: int


def copy_accepted(
    settings: Settings,
    transactions: Callable[[], int],
    target: Path,
    report: Callable[[str], None],
    require: Callable[[int], None],
) -> Copied:
    """Copy mempool and keys of the ledger in `settings.folder` into `target`.

    transactions: how many transactions blocks hold now. require: is called with the id after the
    last one, and raises if the backup must not end there. Segments in `target` that an earlier
    backup needs stay until `remove_others`. Raises WriteFailed, Damage.
    """
    folder = target / FOLDER
    files.make_folder(folder)
    new_bytes, sizes = 0, {}
    with closing(Mempool(settings, transactions, report)) as mempool:
        following, segments = _sound_segments(mempool)
        require(following)
        for name, data in segments:
            new_bytes += _keep(folder / name, data)
            sizes[name] = len(data)
    aside = {path.name: path.read_bytes() for path in _kept_aside(settings.folder)}
    new_bytes += sum(_keep(folder / name, data) for name, data in aside.items())
    keys = Keys(settings.folder / FOLDER).copy()
    if keys is not None:
        new_bytes += _keep(folder / KEYS_NAME, keys)
    return Copied(sizes, {name: len(data) for name, data in aside.items()}, following, new_bytes)


def _sound_segments(mempool: Mempool) -> tuple[int, Iterator[tuple[str, bytes]]]:
    try:
        return mempool.whole_segments()
    except NeedsRepair as error:
        raise DamagedMempool(
            f"{error}; start the service or run `mine --once`, which repairs it, then back up again"
        ) from error


def _kept_aside(chain: Path) -> list[Path]:
    """The files with damaged bytes.

    They are listed after the segments were read, because they are written before a segment is
    written anew.
    """
    folder = chain / FOLDER
    return [*aside_in(folder), *(lost.path for lost in lost_in(folder))]


def restore_accepted(
    source: Path, target: Path, sizes: dict[str, int], next_transaction: int
) -> None:
    """Copy mempool, keys and tokens of the backup in `source` into `target`.

    sizes: the files of the mempool, and how many bytes of each to copy. Keys of ids from
    `next_transaction` on are left out. Raises BackupRefused, WriteFailed, DamagedMempool.
    """
    folder = target / FOLDER
    files.make_folder(folder)
    for name, size in sizes.items():
        path = source / FOLDER / name
        data = _beginning(path, size)
        if len(data) < size:
            raise BackupRefused(f"{path} has {counted(len(data), 'byte')} instead of {size:,}")
        files.write_new(folder / name, data)
    Keys(source / FOLDER).copy_below(next_transaction, folder)
    copy_tokens(source, target)


def _beginning(path: Path, size: int) -> bytes:
    """Read the first `size` bytes of a file, or all that it has; none if it is not there."""
    try:
        with path.open("rb") as stream:
            return stream.read(min(size, path.stat().st_size))
    except FileNotFoundError:
        return b""


def copy_tokens(source: Path, target: Path) -> None:
    """Copy the file of tokens, readable only by its owner; remove the copy if there is no file."""
    path = source / tokens.FILE_NAME
    if path.exists():
        files.write_new(target / tokens.FILE_NAME, path.read_bytes(), mode=PRIVATE)
    else:
        files.remove(target / tokens.FILE_NAME)


def _keep(path: Path, data: bytes) -> int:
    """Make a file hold `data`, and read it again. Returns how many bytes had to be written."""
    if path.exists() and path.read_bytes() == data:
        return 0
    files.write_new(path, data)
    if _read_from_disk(path) != data:
        raise BackupRefused(
            f"{path} has other bytes when it is read back: do not trust the disk it is on"
        )
    return len(data)


def _read_from_disk(path: Path) -> bytes:
    """The bytes of a synced file as they are on the disk, not in the kernel's memory."""
    with path.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return stream.read()


def remove_others(folder: Path, names: Iterable[str]) -> None:
    """Remove the mempool's files that are not among `names` from the copy in `folder`."""
    wanted = {KEYS_NAME, *names}
    for path in (folder / FOLDER).iterdir():
        if path.name not in wanted:
            files.remove(path)


def pending_in(settings: Settings, folder: Path, transactions: int, mempool: dict[str, int]) -> int:
    """How many flights are pending in a copy whose blocks hold `transactions`.

    mempool: the segments, and how many bytes of each must be whole records. Raises BackupRefused or
    DamagedMempool if that is not so.
    """
    copy = replace(settings, dir=str(folder))
    with closing(Mempool(copy, lambda: transactions, _refuse)) as copied:
        following, segments = copied.whole_segments()
        sizes = {name: len(data) for name, data in segments}
    for name, size in mempool.items():
        if sizes.get(name, 0) != size:
            raise BackupRefused(
                f"{name} of the mempool is damaged after byte {sizes.get(name, 0)} of {size}"
            )
    return max(0, following - transactions)


def _refuse(line: str) -> None:
    raise BackupRefused(line)
