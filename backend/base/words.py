"""Writes words for messages: counts with their nouns, what others wrote, and trouble once."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

Report = Callable[[str], None]  # takes a line for people: for a log, or standard error

# How this machine's users call the command line: scripts/deploy/install makes it a program, and in
# a clone the Python of scripts/run does it, in the clone's folder, without any preparation.
_is_installed = __file__.startswith("/opt/") and Path("/usr/local/bin/flightchain").exists()
_folder = Path(__file__).resolve().parents[2]
_is_image = str(_folder) == "/opt/flightchain" and find_spec("pip") is None  # by Dockerfile
_python = sys.executable.removeprefix(f"{_folder}/")
PYTHON = "python" if _python == sys.executable else _python
COMMAND = "sudo flightchain" if _is_installed else f"{PYTHON} -m backend"


def pip_install(requirements: str) -> str:
    """Return the command that installs what a file of ours names. requirements: its place."""
    if _is_installed:  # where users are in any folder
        return f"sudo {sys.executable} -m pip install -r {_folder / requirements}"
    if _is_image:  # a container is read-only
        return f"pip install -r {requirements} where the image is built"
    return f"{PYTHON} -m pip install -r {requirements}"


class Trouble:
    """Reports what goes wrong when it is new, and not again before all has gone well."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._reported = ""

    def report(self, line: str) -> None:
        """Report a line, unless it was the last one and the trouble is not over since then."""
        if line != self._reported:
            self._reported = line
            self._report(line)

    def end(self, line: str = "") -> None:
        """Note that all goes well, and report a line, if there is one, when it did not before."""
        if self._reported and line:
            self._report(line)
        self._reported = ""


def counted(count: int, singular: str, plural: str = "") -> str:
    """Write a count and its noun: "1,500 flights" for 1500 and "flight", "1 flight" for 1.

    plural: the noun for any number but 1; without it, `singular` with an s.
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def printable(text: str, limit: int = 1000) -> str:
    r"""Write text from outside for a terminal or a log, in one line of at most `limit` characters.

    What cannot be printed is escaped: it could move the cursor, hide what stands there, or begin a
    line that looks like one of ours. So ESC becomes `\x1b`.
    """
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1]
    )
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
