"""The names of the mempool's files.

A segment of the log is named after the first id that it may hold, `pending-FIRST.log`. When a
damaged segment is put right it is written anew as the next generation, `pending-FIRST.TIME.log`,
and the one before is removed. So a file is never changed under those who read it, and a new name
tells them to read anew. Of several generations the newest counts.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from backend.clock import now_ms

_NAME = re.compile(r"pending-(\d{16})(?:\.(\d{1,16}))?\.log", re.ASCII)
_LOST = re.compile(r"lost-(\d+)-(\d+)(?:\.\d+)?\.bin", re.ASCII)


class Segment(NamedTuple):
    """A file of the log, by the first id that it may hold.

    generation: when it was made anew, UTC milliseconds; 0 if it never was.
    """

    first: int
    generation: int = 0

    @property
    def name(self) -> str:
        """The name of its file."""
        generation = f".{self.generation}" if self.generation else ""
        return f"pending-{self.first:016d}{generation}.log"

    @property
    def renewed(self) -> "Segment":
        """The segment that takes its place. Nobody has seen its name, even if this one is gone."""
        return Segment(self.first, max(self.generation + 1, now_ms()))


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  this is asked often
    except FileNotFoundError:
        return []


def all_segments_in(folder: Path) -> list[Segment]:
    """Every segment in `folder`, in order, with the generations that no longer count."""
    found = (_NAME.fullmatch(name) for name in _names_in(folder))
    return sorted(Segment(int(match[1]), int(match[2] or 0)) for match in found if match)


def segments_in(folder: Path) -> list[Segment]:
    """The segments in `folder` that count, in order."""
    newest = {segment.first: segment for segment in all_segments_in(folder)}
    return list(newest.values())


class Lost(NamedTuple):
    """A file with what is left of flights that were lost: so many from id `first` on."""

    first: int
    flights: int
    path: Path


def lost_name(first: int, flights: int, number: int) -> str:
    """The name of such a file; number: 1, or more if that name is taken."""
    again = f".{number}" if number > 1 else ""
    return f"lost-{first}-{flights}{again}.bin"


def lost_in(folder: Path) -> list[Lost]:
    """Such files in `folder`, oldest ids first."""
    found = ((_LOST.fullmatch(name), folder / name) for name in _names_in(folder))
    return sorted(Lost(int(match[1]), int(match[2]), path) for match, path in found if match)
