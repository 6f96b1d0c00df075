"""The lines that a program goes through."""

import sys
from pathlib import Path


def lines_of(path: str) -> list[bytes]:
    """The lines of a file. Ends the program if there are none: nothing would be done."""
    lines = Path(path).read_bytes().splitlines()
    if not lines:
        sys.exit(f"error: {path} holds no lines")
    return lines
