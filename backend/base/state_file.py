"""Keeps a small state as JSON in a file, which is replaced in one step: nobody reads half of one.

Whatever stands in such a file, reading it raises OSError or ValueError and nothing else.
"""

import os
from copy import copy
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from backend.base import files

T = TypeVar("T")


class StateFile(Generic[T]):
    """The file `name` in any folder; what it holds is of type T."""

    def __init__(self, name: str, type_: type[T], most_bytes: int = -1) -> None:
        """most_bytes: what is longer counts as damaged; -1: nothing is."""
        self.name = name
        self._most_bytes = most_bytes
        self._decode = msgspec.json.Decoder(type_).decode

    def named(self, before: str) -> "StateFile[T]":
        """Return the file whose name has `before` in front, with the decoder of this one."""
        other = copy(self)
        other.name = f"{before}{self.name}"
        return other

    def load(self, folder: Path) -> T:
        """Return the state. Raises OSError if it cannot be read, ValueError if it is damaged."""
        try:
            with open(folder / self.name, "rb", opener=_opened) as file:
                return self._decode(file.read(self._most_bytes) or b"")  # None from a pipe
        except RecursionError as error:  # which msgspec raises for brackets in brackets
            raise ValueError(str(error)) from None

    def read(self, folder: Path) -> T | None:
        """Return the state; None if there is none, or it cannot be read or is damaged."""
        try:
            return self.load(folder)
        except (OSError, ValueError):
            return None

    def write(self, folder: Path, state: T, mode: int = 0o644) -> None:
        """Replace the state, synced and with a line for each value. Raises WriteFailed."""
        text = msgspec.json.format(msgspec.json.encode(state), indent=1)
        files.write_new(folder / self.name, text + b"\n", mode)

    def write_unsynced(self, folder: Path, state: T) -> None:
        """Replace a state that may be lost with the power. Raises WriteFailed."""
        files.replace_unsynced(folder / self.name, msgspec.json.encode(state))


def _opened(path: str, flags: int) -> int:
    """Open a file; a pipe in its place is empty, instead of keeping its reader waiting."""
    return os.open(path, flags | os.O_NONBLOCK)
