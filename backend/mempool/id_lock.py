"""The lock under which ids are given, between the threads of this process and all others."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.base.errors import TryLater, WriterBusy
from backend.base.files import LOCK_PATIENCE_S, FileLock


class IdLock:
    """The lock with the file at a path. between_processes: that of this process alone."""

    def __init__(self, path: Path) -> None:
        self.between_processes = FileLock(path)
        self._between_threads = threading.Lock()  # held while waiting for other processes
        self._holder = -1  # the thread that holds both

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it; a thread that holds it may take it again.

        Raises TryLater if others hold it for longer than `LOCK_PATIENCE_S`.
        """
        if self._holder == threading.get_ident():
            yield
            return
        self._take()
        try:
            yield
        finally:
            self._holder = -1
            self.between_processes.release()
            self._between_threads.release()

    def _take(self) -> None:
        lock = self.between_processes
        if not self._between_threads.acquire(timeout=LOCK_PATIENCE_S):
            raise TryLater(
                f"{lock.path} is locked by another request of this process (PID {os.getpid()})"
            )
        try:
            lock.acquire(wait=True, within_s=LOCK_PATIENCE_S)
        except BaseException as error:
            self._between_threads.release()
            if isinstance(error, WriterBusy):
                words = f"{error}; nothing is accepted until that process releases it"
                raise TryLater(words) from error
            raise
        self._holder = threading.get_ident()
