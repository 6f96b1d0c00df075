"""Notes which blocks were found to be damaged, in `damaged.json`, until they are read well again.

A worker that meets a damaged block answers the one request with an error. So that every process
knows of it, above all the one that is asked whether the service is ready, the worker notes the
block's height and what is wrong. So does the scrub, which also reads all noted blocks again and
again. The file is never synced: damage that is forgotten in a power cut is met again.
"""

import threading
from collections.abc import Collection
from pathlib import Path

from backend.base import files
from backend.base.errors import DamagedBlock, WriteFailed
from backend.base.state_file import StateFile
from backend.base.words import COMMAND, counted

NAME = "damaged.json"
MOST_NOTES = 100
MOST_SHOWN = 3

_FILE = StateFile(NAME, dict[int, str])


class DamageNotes:
    """The notes about the chain in `folder`. Safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[int, str] = {}  # of the file, when it was last read here
        self._unwritten: dict[int, str] = {}  # on a medium that is read-only

    def known(self) -> dict[int, str]:
        """Return height -> what is wrong, of each block that is noted, in order."""
        with self._lock:
            return dict(sorted({**self._read(), **self._unwritten}.items()))

    def met(self, error: DamagedBlock) -> None:
        """Note a block that could not be read well."""
        with self._lock:
            noted = self._read()
            if noted.get(error.height) == error.what or len(noted) >= MOST_NOTES:
                return
            self._write({**noted, error.height: error.what})

    def read_well(self, height: int) -> None:
        """Withdraw the note about a block, if there is one. Without, this costs next to nothing."""
        if height not in self._known and height not in self._unwritten:
            return
        with self._lock:
            self._unwritten.pop(height, None)
            self._write({at: what for at, what in self._read().items() if at != height})

    def _read(self) -> dict[int, str]:
        self._known = _FILE.read(self._folder) or {}
        return self._known

    def _write(self, notes: dict[int, str]) -> None:
        try:
            if notes:
                _FILE.write_unsynced(self._folder, notes)
            else:
                files.remove(self._folder / NAME)
            self._known = notes
        except WriteFailed:
            self._unwritten |= notes


def reasons(notes: DamageNotes, named: Collection[int]) -> list[str]:
    """Return the reasons why a service is not ready: the first damaged blocks, and how many more.

    named: heights of blocks that are named already.
    """
    errors = [DamagedBlock(*note) for note in notes.known().items() if note[0] not in named]
    shown = [str(error) for error in errors[:MOST_SHOWN]]
    if more := len(errors) - len(shown):
        shown.append(f"{counted(more, 'more block is', 'more blocks are')} damaged")
    return [f"{reason}; run `{COMMAND} verify`" for reason in shown]
