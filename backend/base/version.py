"""Says which release of Flightchain runs, and which commit of it."""

import subprocess
from functools import cache
from pathlib import Path

VERSION = "1.1.0"
COMMIT_FILE = Path(__file__).resolve().parents[2] / "COMMIT"
"""Holds the commit where the code is installed without its repository."""

UNKNOWN = "unknown"


@cache
def commit() -> str:
    """Return the first digits of the commit that the code is of; "unknown" if nothing tells."""
    if COMMIT_FILE.is_file():
        return COMMIT_FILE.read_text(encoding="ascii").strip() or UNKNOWN
    command = ["git", "-C", str(COMMIT_FILE.parent), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(  # noqa: S603  our own words
            command, capture_output=True, check=True, timeout=5, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return done.stdout.strip()
