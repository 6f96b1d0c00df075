"""Reads the notes with which keys of the log have signed the ones that followed (see `rotation`).

All who prove something read them, so this module loads nothing that signs.
"""

import json
from pathlib import Path

from backend.base.errors import Damage

SUCCESSIONS_NAME = "log.successions"
TITLE = "flightchain key succession"


def successions_in(folder: Path) -> list[str]:
    """The notes with which old keys have signed new ones, oldest first. Raises Damage."""
    path = folder / SUCCESSIONS_NAME
    reason = "it is not a list of notes"
    try:
        found = json.loads(path.read_text("utf-8", errors="replace"))
        is_right = isinstance(found, list) and all(isinstance(one, str) for one in found)
    except FileNotFoundError:
        return []
    except OSError as error:
        is_right, reason = False, str(error.strerror)
    except (ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise Damage(f"{path} is damaged or cannot be read ({reason}); put back a copy")
    return list(found)
