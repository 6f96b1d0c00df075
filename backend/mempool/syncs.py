"""Syncs the mempool's log: at once and for many threads together, or soon.

One sync serves every thread that wrote before it began (group commit). After it, and before a
request is answered, it is noted how far flights are acknowledged. After a sync has failed no later
one can be believed: the kernel reports a failure once, and then reports the same bytes as synced.
"""

import logging
import os
import threading
from collections.abc import Callable

from backend.errors import WriteFailed
from backend.mempool.acknowledged import Acknowledged
from backend.mempool.log import NOTHING, End, Log
from backend.storage import files

ASYNC_SYNC_S = 0.5

_log = logging.getLogger(__name__)


class GroupCommit:
    """Syncs `log`, which is used under `lock`."""

    def __init__(self, log: Log, lock: threading.Lock, acknowledged: Acknowledged) -> None:
        self._log = log
        self._lock = lock
        self._acknowledged = acknowledged
        self._syncing = threading.Lock()
        self._synced = NOTHING  # all up to this end is on the disk
        self._failed = False

    def fail(self) -> None:
        """Note that a write has failed: `require_sound` raises from now on."""
        self._failed = True

    def require_sound(self) -> None:
        """Raise WriteFailed if anything has failed before."""
        if self._failed:
            raise WriteFailed("the mempool could not be written; restart the service")

    def sync(self, written: End) -> None:
        """Return when everything up to `written` is on the disk. Raises WriteFailed."""
        with self._syncing:
            self.require_sound()
            if self._synced >= written:
                return
            try:
                reached = self._sync_to(written)
                self._acknowledged.note(reached.mark())
            except WriteFailed:
                self.fail()
                raise
            self._synced = reached

    def _sync_to(self, written: End) -> End:
        """Sync the log, and return how far all of it is on the disk."""
        with self._lock:
            reached = self._log.end
            if reached.segment > written.segment:  # beginning the next one has synced this one
                return written
            try:
                opened = self._log.descriptor(written.segment)
            except FileNotFoundError:  # another process has rewritten and synced, or trimmed it
                return written
            descriptor = os.dup(opened)  # it may be closed meanwhile
        try:
            files.sync(descriptor, self._log.path(written.segment))
        finally:
            os.close(descriptor)
        return max(reached, written)  # a log that is being read again may end before `written`


class SyncSoon:
    """Syncs in a thread for requests that do not wait; it runs only while there is work."""

    def __init__(self, sync: Callable[[End], None]) -> None:
        self._sync = sync
        self._lock = threading.Lock()
        self._written: End | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def add(self, written: End) -> None:
        """Have everything up to `written` synced within `ASYNC_SYNC_S`."""
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
            except WriteFailed as error:  # `GroupCommit` remembers it and refuses from now on
                _log.error("flights were accepted but may not be on the disk: %s", error)

    def close(self) -> None:
        """Sync what is left, and end the thread."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
