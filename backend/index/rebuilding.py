"""Has an index rebuilt that somebody has marked as wrong, while its writer runs."""

import time
from collections.abc import Callable

REST = 9  # how many times as long as a rebuild the writer is left in peace after it


class IndexRebuilder:
    """Rebuilds a marked index in at most a tenth of its caller's time.

    So an index that is damaged again and again does not keep its writer from writing blocks.
    """

    def __init__(self, is_marked: Callable[[], bool], rebuild: Callable[[], None]) -> None:
        """is_marked: tells whether the index is marked as wrong. rebuild: rebuilds it then."""
        self._is_marked = is_marked
        self._rebuild = rebuild
        self._not_before = 0.0

    def look(self) -> bool:
        """Rebuild the index if it is marked. Returns whether it was. Raises what `rebuild` does."""
        started = time.monotonic()
        if started < self._not_before or not self._is_marked():
            return False
        try:
            self._rebuild()
        finally:
            now = time.monotonic()
            self._not_before = now + REST * (now - started)
        return True
