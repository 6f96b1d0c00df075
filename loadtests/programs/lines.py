"""Reads the input lines of a program."""

import sys
from pathlib import Path


def lines_of(path: str) -> list[bytes]:
    """The lines of a file. Ends the program if there are none, because it would do nothing."""
    lines = Path(path).read_bytes().splitlines()
    if not lines:
        sys.exit(f"error: {path} has no lines")
    return lines
