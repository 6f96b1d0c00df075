"""A disk that remembers what a power cut may leave of it.

`Disk` watches the calls of `os` that touch one folder (they still happen) and keeps for each file
what is synced and what is only written. `states` are the contents that a power cut may leave: names
in the order in which they were made, and of every file any mix of old and new sectors, at its old
or its new size. It can also kill the process: then every further call fails, and what was written
stays in the kernel's memory, synced or not. And it can let one sync of a file fail.
"""

import errno
import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.dying import Killed

SECTOR = 512
FREELY_MIXED_SECTORS = 4

Files = dict[str, bytes]


class _File:
    def __init__(self, synced: bytes = b"") -> None:
        self.synced, self.written = synced, bytearray(synced)
        self.lost: set[int] = set()  # bytes that no sync writes unless they are written again

    def write(self, data: bytes, offset: int) -> None:
        self.written.extend(bytes(max(0, offset - len(self.written))))
        self.written[offset : offset + len(data)] = data
        self.lost.difference_update(range(offset, offset + len(data)))

    def sync(self, *, fails: bool) -> None:
        """Sync it. After a failure Linux takes for written what it should have written."""
        new = self.written
        old = self.synced.ljust(len(new), b"\0")
        if fails:
            self.lost |= {at for at, byte in enumerate(new) if byte != old[at]}
        else:
            self.synced = bytes(old[at] if at in self.lost else byte for at, byte in enumerate(new))

    def variants(self) -> set[bytes]:
        """Returns what a power cut may leave of this file."""
        old, new = self.synced, bytes(self.written)
        if old == new:
            return {old}
        size = max(len(old), len(new))
        changed = [
            at for at in range(0, size, SECTOR) if old[at : at + SECTOR] != new[at : at + SECTOR]
        ]
        variants = set()
        for kept in _mixes(changed):
            mixed = bytearray(old.ljust(size, b"\0"))
            for at in kept:
                mixed[at : at + SECTOR] = new[at : at + SECTOR].ljust(SECTOR, b"\0")
            variants |= {bytes(mixed[: len(old)]), bytes(mixed[: len(new)])}
        return variants


def _mixes(changed: list[int]) -> Iterator[list[int]]:
    """Which changed sectors reach the disk: every subset of a few, else runs and single gaps."""
    if len(changed) <= FREELY_MIXED_SECTORS:
        for mask in product((False, True), repeat=len(changed)):
            yield [at for at, kept in zip(changed, mask, strict=True) if kept]
        return
    for i in range(len(changed) + 1):
        yield changed[:i]
        yield changed[i:]
        yield changed[:i] + changed[i + 1 :]


class Disk:
    """The folder `watched`; `after` is called after every operation that changes or syncs it.

    kill_at: the operation behind which the process is killed. fail_at: the sync of a file that
    fails. What is in the folder already counts as synced.
    """

    def __init__(
        self,
        watched: Path,
        after: Callable[["Disk"], None],
        kill_at: int | None = None,
        fail_at: int | None = None,
    ) -> None:
        self._watched, self._after, self._kill_at, self._fail_at = watched, after, kill_at, fail_at
        self._operations = self._syncs = 0
        self._is_dead = False
        paths = watched.iterdir() if watched.exists() else ()
        synced = {path.name: _File(path.read_bytes()) for path in paths}
        self._names = [synced]  # as synced, then after each change since
        self._files: dict[int, _File] = {}  # by descriptor
        self._folders: set[int] = set()
        self._close = os.close  # the kernel does it for the dead

    def install(self, patch: pytest.MonkeyPatch) -> None:
        watchers: dict[str, Callable[..., bool]] = {
            "open": self._opened,
            "close": self._closed,
            "pwrite": self._wrote,
            "ftruncate": self._cut,
            "fdatasync": self._synced,
            "fsync": self._synced,
            "replace": self._replaced,
            "unlink": self._unlinked,
        }
        patch.setattr(os, "fdatasync", self._failing(os.fdatasync))
        for name, watcher in watchers.items():
            patch.setattr(os, name, self._watching(watcher, getattr(os, name)))

    def states(self) -> Iterator[Files]:
        """Yield what a power cut now may leave."""
        for names in self._names:
            for chosen in product(*(file.variants() for file in names.values())):
                yield dict(zip(names, chosen, strict=True))

    def start_again(self) -> None:
        """Another process takes over after the one that was killed, and whose files are closed."""
        self._is_dead = False
        for descriptor in {*self._files, *self._folders}:
            os.close(descriptor)

    def _failing(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def fdatasync(descriptor: int) -> None:
            file = self._files.get(descriptor)
            self._syncs += file is not None
            if file is not None and self._syncs == self._fail_at:
                file.sync(fails=True)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(descriptor)

        return fdatasync

    def _watching(self, watcher: Callable[..., bool], real: Callable[..., Any]) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            if self._is_dead and real is not self._close:
                raise Killed
            result = real(*arguments, **options)
            if watcher(result, *arguments):
                self._operations += 1
                if self._operations == self._kill_at:
                    self._is_dead = True
                    raise Killed
                self._after(self)
            return result

        return call

    def _renamed(self, change: Callable[[dict[str, _File]], object]) -> bool:
        names = dict(self._names[-1])
        change(names)
        self._names.append(names)
        return True

    def _opened(self, descriptor: int, path: Any, flags: int, *_: Any) -> bool:
        target, names = Path(path), self._names[-1]
        if target == self._watched:
            self._folders.add(descriptor)
        if target.parent != self._watched:
            return False
        is_new = target.name not in names
        if is_new:
            self._renamed(lambda names: names.update({target.name: _File()}))
        self._files[descriptor] = file = self._names[-1][target.name]
        if flags & os.O_TRUNC:
            file.written.clear()
        return bool(flags & os.O_TRUNC) or is_new

    def _closed(self, _: None, descriptor: int) -> bool:
        self._files.pop(descriptor, None)
        self._folders.discard(descriptor)
        return False

    def _wrote(self, count: int, descriptor: int, data: bytes, offset: int) -> bool:
        file = self._files.get(descriptor)
        if file is not None:
            file.write(data[:count], offset)
        return file is not None

    def _cut(self, _: None, descriptor: int, size: int) -> bool:
        file = self._files.get(descriptor)
        if file is not None:
            del file.written[size:]
        return file is not None

    def _synced(self, _: None, descriptor: int) -> bool:
        file = self._files.get(descriptor)
        if file is not None:
            file.sync(fails=False)
        if descriptor in self._folders:
            del self._names[:-1]
        return file is not None or descriptor in self._folders

    def _replaced(self, _: None, source: Any, target: Any) -> bool:
        old, new = Path(source).name, Path(target).name
        return self._renamed(lambda names: names.update({new: names.pop(old)}))

    def _unlinked(self, _: None, path: Any) -> bool:
        return self._renamed(lambda names: names.pop(Path(path).name))
