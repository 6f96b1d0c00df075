"""Makes what was written to the mempool durable: at once, with one sync for many threads, or soon.

SQLite commits without a sync, so that the lock between processes is held for a moment only. One
sync then serves every thread that wrote before it began (group commit). After it, and before a
request is answered, it is noted how far flights are acknowledged. After a sync has failed no later
one can be believed: the kernel reports a failure once, and then reports the same bytes as synced.

With the syncs of SQLite itself (`synchronous = FULL`), which come under the lock, two workers
accept 0.46 times as many posts of eight clients, and whoever reads waits for the disk, too.
"""

import logging
import threading

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
        self._due = 0  # ids below this one are to be synced by the thread
        self._thread: threading.Thread | None = None  # runs while there is work
        self._closing = threading.Event()

    def fail(self) -> None:
        """Note that a write has failed: `require_sound` raises from now on."""
        self._failed = True

    def require_sound(self) -> None:
        """Raise WriteFailed if anything has failed before."""
        if self._failed:
            raise WriteFailed(
                "the mempool could not be written, so nothing is accepted; restart the service"
            )

    def sync(self, written: int) -> None:
        """Return when all flights with ids below `written` are on the disk. Raises WriteFailed."""
        with self._syncing:
            self.require_sound()
            if self._synced >= written:
                return
            try:
                with self._lock:
                    reached = max(written, self._store.next)  # it may be being read again
                    mark = Mark(reached, self._store.mined)
                    sync = self._store.log_sync()
                sync()
                self._watermark.note(mark)
            except WriteFailed:
                self.fail()
                raise
            self._synced = mark.next

    def sync_soon(self, written: int) -> None:
        """Have all flights with ids below `written` synced within `ASYNC_SYNC_S`, by a thread."""
        with self._lock:
            self._due = max(self._due, written)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="sync soon", daemon=True)
                thread.start()  # the system may refuse it
                self._thread = thread

    def _run(self) -> None:
        while True:
            self._closing.wait(ASYNC_SYNC_S)
            with self._lock:
                due, self._due = self._due, 0
                if not due:
                    self._thread = None
                    return
            try:
                self.sync(due)
            except (FlightchainError, OSError) as error:
                _log.error("flights were accepted but may not be on the disk: %s", error)
                # A write that failed is remembered; anything else may pass.
                if not isinstance(error, WriteFailed) and not self._closing.is_set():
                    self.sync_soon(due)

    def close(self) -> None:
        """Sync what is left, and end the thread."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
