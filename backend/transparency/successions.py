"""Reads the notes with which keys of the log have signed the ones that followed (see `rotation`).

All who prove something read them, so this module loads nothing that signs.
"""

import json
from pathlib import Path

from backend.errors import Damage

SUCCESSIONS_NAME = "log.successions"


def successions_in(folder: Path) -> list[str]:
    """The notes with which old keys have signed new ones, oldest first. Raises Damage."""
    path = folder / SUCCESSIONS_NAME
    try:
        found = json.loads(path.read_text("utf-8", errors="replace"))
        is_right = isinstance(found, list) and all(isinstance(one, str) for one in found)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise Damage(f"{path} is damaged or cannot be read; put back a copy")
    return list(found)
