"""Marks an index that somebody finds to be wrong, in `index/damaged`, so that it is rebuilt.

A worker that meets damage cannot mend it, because only the holder of the writer lock writes. It
leaves the name of the file and the reason in the mark. Every process then refuses that file, and
the miner rebuilds the index, which removes the mark.

The whole file is refused for one wrong page: on a disk that loses what was written, others may be
old, and an old page has a good checksum.
"""

from pathlib import Path

from backend.base import files
from backend.base.errors import WriteFailed

NAME = "damaged"


def mark(path: Path, reason: str) -> bool:
    """Mark the index file at `path` (no link) as damaged; whether that could be done.

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
