"""The lock under which ids are given, between the threads of this process and all others."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from backend.base.errors import TryLater, WriterBusy
from backend.base.files import LOCK_PATIENCE_S, FileLock


class IdLock:
    """The lock with the file at a path."""

    def __init__(self, path: Path) -> None:
        self._between_processes = FileLock(path)
        self._between_threads = threading.RLock()  # held while waiting for other processes

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it; a thread that holds it may take it again.

        Raises TryLater if others hold it for longer than `LOCK_PATIENCE_S`.
        """
        lock = self._between_processes
        if not self._between_threads.acquire(timeout=LOCK_PATIENCE_S):
            raise TryLater(
                f"{lock.path} is locked by another request of this process (PID {os.getpid()})"
            )
        with ExitStack() as taken:
            taken.callback(self._between_threads.release)
            if not lock.is_held:  # by this thread
                try:
                    lock.acquire(wait=True, within_s=LOCK_PATIENCE_S)
                except WriterBusy as error:
                    words = f"{error}; nothing is accepted until that process releases it"
                    raise TryLater(words) from error
                taken.callback(lock.release)
            yield
