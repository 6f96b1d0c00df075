"""Names the mempool's files and lists them.

A segment of the log is named after the first id that it may hold, `pending-FIRST.log`, which is the
id after the last one of the segment before. So a segment that is missing between two others is
noticed. When a segment has lost records it is written anew as the next generation,
`pending-FIRST.TIME.log`, and the old file is removed. So records never move under those who read
them, and a new name tells readers to read it again. Of several generations the newest counts. A
file is only changed in three ways: records are appended, bytes after its last record are cut off,
and flipped bits are put right.

Bytes that could not be read as records are kept, and the service never overwrites or removes them:

    lost-FIRST-COUNT.bin               so many flights from id FIRST on are lost
    damaged-NEXT.bin                   no pending flight is missing because of them
    perhaps-acknowledged-NEXT.bin      it is not known whether they held acknowledged flights

NEXT is the id after the record before them. A number follows if the name is taken.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from backend.clock import now_ms

NAME = re.compile(r"pending-(\d{16})(?:\.(\d{1,16}))?\.log", re.ASCII)
ASIDE = re.compile(r"(?:damaged|perhaps-acknowledged)-\d{1,20}(?:\.\d{1,20})?\.bin", re.ASCII)
LOST = re.compile(r"lost-(\d{1,20})-(\d{1,20})(?:\.\d{1,20})?\.bin", re.ASCII)


class Segment(NamedTuple):
    """A file of the log.

    first: the first id that it may hold. generation: when it was written anew, UTC milliseconds; 0
    if it never was.
    """

    first: int
    generation: int = 0

    @property
    def name(self) -> str:
        """The name of the segment's file."""
        generation = f".{self.generation}" if self.generation else ""
        return f"pending-{self.first:016d}{generation}.log"

    @property
    def renewed(self) -> "Segment":
        """The segment that replaces this one, under another name."""
        return Segment(self.first, max(self.generation + 1, now_ms()))


def names_in(folder: Path) -> list[str]:
    """The names of all files in `folder`, in no order; none if it is not there."""
    try:
        return os.listdir(folder)  # noqa: PTH208  this is asked often
    except FileNotFoundError:
        return []


def all_segments_in(folder: Path) -> list[Segment]:
    """Every segment in `folder`, in order, including generations that no longer count."""
    return _all_segments_of(names_in(folder))


def _all_segments_of(names: Iterable[str]) -> list[Segment]:
    found = (NAME.fullmatch(name) for name in names)
    return sorted(Segment(int(match[1]), int(match[2] or 0)) for match in found if match)


def segments_in(folder: Path) -> list[Segment]:
    """The segments in `folder` that count, in order."""
    return segments_of(names_in(folder))


def segments_of(names: Iterable[str]) -> list[Segment]:
    """The segments with these file names that count, in order."""
    newest = {segment.first: segment for segment in _all_segments_of(names)}
    return list(newest.values())


class Lost(NamedTuple):
    """A file with what is left of lost flights: `flights` of them from id `first` on."""

    first: int
    flights: int
    path: Path


DAMAGED, PERHAPS_ACKNOWLEDGED = "damaged", "perhaps-acknowledged"  # what their names begin with


def aside_in(folder: Path) -> list[Path]:
    """The files in `folder` with damaged bytes for which no flight is known to be missing."""
    return sorted(folder / name for name in names_in(folder) if ASIDE.fullmatch(name))


def lost_in(folder: Path) -> list[Lost]:
    """The files in `folder` with what is left of lost flights, oldest ids first."""
    found = ((LOST.fullmatch(name), folder / name) for name in names_in(folder))
    return sorted(Lost(int(match[1]), int(match[2]), path) for match, path in found if match)
