"""Tells whether a restore into a chain's folder was begun and has not come to its end.

It keeps its copy in `restoring/`, and moves the blocks out of it last. So while that folder is
there and no blocks are, there is no ledger to write to, and whatever was written would be lost.
"""

from pathlib import Path

from backend.storage import layout


def unfinished_restore(folder: Path) -> str:
    """Return a message if a restore into `folder` is at work, or was killed; "" if none is."""
    stage = folder / layout.RESTORING_FOLDER
    if not stage.exists() or (folder / layout.BLOCKS_FOLDER).exists():
        return ""
    return f"a backup was restored to {folder}, but not completely; restore it again"
