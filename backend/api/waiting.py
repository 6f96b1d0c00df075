"""A bound on the requests that wait."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from backend.settings import Settings


class CommitWaiters:
    """Requests that wait until they are mined: at most half of a worker's threads.

    The others answer 202 at once, so that waiting never keeps anybody from asking.
    """

    def __init__(self, settings: Settings) -> None:
        self._places = threading.BoundedSemaphore(max(1, settings.threads // 2))
        self._wait_s = settings.commit_wait_s

    @contextmanager
    def wait_s(self, wants_to_wait: bool) -> Iterator[float]:
        """How long this request may wait, in seconds; 0 if enough others are waiting."""
        if not (wants_to_wait and self._places.acquire(blocking=False)):
            yield 0.0
            return
        try:
            yield self._wait_s
        finally:
            self._places.release()
