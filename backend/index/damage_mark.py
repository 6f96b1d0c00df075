"""Marks an index that somebody finds to be wrong, in `index/damaged`, so that it is rebuilt.

A worker that meets damage cannot repair it, because only the holder of the writer lock writes. It
leaves the name of the file and the reason in the mark. Every process then refuses that file, and
the holder of that lock rebuilds the index (`IndexRebuilder`), which removes the mark.

The whole file is refused for one wrong page: on a disk that loses what was written, others may be
old, and an old page has a good checksum.
"""

import time
from collections.abc import Callable
from pathlib import Path

from backend.base import files
from backend.base.errors import WriteFailed

NAME = "damaged"
REST = 9  # how many times as long as a rebuild the writer is left in peace after it


def mark(path: Path, reason: str) -> bool:
    """Mark the index file at `path` (no link) as damaged. Returns whether that could be done.

    Nothing can be noted on a medium that is read-only.
    """
    try:
        files.replace_unsynced(path.with_name(NAME), f"{path.name}\n{reason}\n".encode())
    except WriteFailed:
        return False
    return True


def damage_of(path: Path) -> str | None:
    """Return why the index file at `path` (no link) is marked as damaged; None if it is not.

    Raises OSError if that cannot be told.
    """
    try:
        text = path.with_name(NAME).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    name, _, reason = text.partition("\n")
    return reason.strip() if name == path.name else None


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
