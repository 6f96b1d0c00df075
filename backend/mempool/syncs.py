"""Syncs the mempool's write-ahead log: at once and for many threads together, or soon.

SQLite commits without a sync, so that the lock between processes is held for a moment only. One
sync then serves every thread that wrote before it began (group commit). After it, and before a
request is answered, it is noted how far flights are acknowledged. After a sync has failed no later
one can be believed: the kernel reports a failure once, and then reports the same bytes as synced.
"""

import logging
import os
import threading
from collections.abc import Callable

from backend.base import files
from backend.base.errors import FlightchainError, WriteFailed
from backend.mempool.store import Store
from backend.mempool.watermark import Mark, Watermark

ASYNC_SYNC_S = 0.5

_log = logging.getLogger(__name__)


class GroupCommit:
    """Syncs what `store` has written, which is used under `lock`."""

    def __init__(self, store: Store, lock: threading.Lock, watermark: Watermark) -> None:
        self._store = store
        self._lock = lock
        self._watermark = watermark
        self._syncing = threading.Lock()
        self._synced = 0  # all ids below this one are on the disk
        self._failed = False

    def fail(self) -> None:
        """Note that a write has failed: `require_sound` raises from now on."""
        self._failed = True

    def require_sound(self) -> None:
        """Raise WriteFailed if anything has failed before."""
        if self._failed:
            raise WriteFailed("the mempool could not be written; restart the service")

    def sync(self, written: int) -> None:
        """Return when all flights with ids below `written` are on the disk. Raises WriteFailed."""
        with self._syncing:
            self.require_sound()
            if self._synced >= written:
                return
            try:
                mark = self._sync_to(written)
                self._watermark.note(mark)
            except WriteFailed:
                self.fail()
                raise
            self._synced = mark.next

    def _sync_to(self, written: int) -> Mark:
        """Sync the log. Returns the mark to note, because all up to there is on the disk."""
        with self._lock:
            reached = max(written, self._store.next)  # what is being read again may end before
            mark = Mark(reached, self._store.mined, reached)
            descriptor = self._store.log_descriptor()
        try:
            files.sync(descriptor, self._store.log_path)
        finally:
            os.close(descriptor)
        return mark


class BackgroundSync:
    """Syncs in a thread for requests that do not wait; it runs only while there is work."""

    def __init__(self, sync: Callable[[int], None]) -> None:
        self._sync = sync
        self._lock = threading.Lock()
        self._written: int | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def add(self, written: int) -> None:
        """Have all flights with ids below `written` synced within `ASYNC_SYNC_S`."""
        with self._lock:
            self._written = max(written, self._written or written)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sync soon", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._closing.wait(ASYNC_SYNC_S)
            with self._lock:
                written, self._written = self._written, None
                if written is None:
                    self._thread = None
                    return
            try:
                self._sync(written)
            except (FlightchainError, OSError) as error:
                _log.error("flights were accepted but may not be on the disk: %s", error)
                # A write that failed is remembered by `GroupCommit`; anything else may pass.
                if not isinstance(error, WriteFailed) and not self._closing.is_set():
                    self.add(written)

    def close(self) -> None:
        """Sync what is left, and end the thread."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
