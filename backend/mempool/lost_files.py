"""Names what is kept of a damaged mempool, in files beside it.

The service never overwrites or removes them, so that a person can look at them:

    lost-FIRST-COUNT.bin   so many flights from id FIRST on are lost; says where they stood
    damaged-N.sqlite       the store as it was, and its write-ahead log with "-wal" at the end

The last release wrote `damaged-NEXT.bin` and `perhaps-acknowledged-NEXT.bin`.
"""

import os
import re
from itertools import count
from pathlib import Path
from typing import NamedTuple

from backend.base.words import counted

_ASIDE = r"(?:damaged|perhaps-acknowledged)-\d+(?:\.\d+)?\.(?:bin|sqlite|sqlite-wal)"
_LOST = re.compile(r"lost-(\d+)-(\d+)(?:\.\d+)?\.bin", re.ASCII)
NAME_FORM = re.compile(rf"{_ASIDE}|{_LOST.pattern}", re.ASCII)


class Lost(NamedTuple):
    """A file that names lost flights: `flights` of them from id `first` on."""

    first: int
    flights: int
    path: Path

    def __str__(self) -> str:
        lost = counted(self.flights, "acknowledged flight is lost", "acknowledged flights are lost")
        return (
            f"{lost}, transactions {self.first} to {self.first + self.flights - 1}; void entries "
            f"take their places, and {self.path} keeps what is known of these flights: post them "
            "again, then move that file out of the folder; their idempotency keys may be used "
            "again"
        )


def names_in(folder: Path) -> list[str]:
    """Return the names of all files in `folder`, in order; none if it is not there."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  this is asked often
    except FileNotFoundError:
        return []


def aside_in(folder: Path) -> list[str]:
    """Return messages about the damaged files in `folder`."""
    return [
        f"a damaged file of the mempool is kept as {folder / name}; look at it, then move it away"
        for name in names_in(folder)
        if re.fullmatch(_ASIDE, name, re.ASCII)
    ]


def lost_in(folder: Path) -> list[Lost]:
    """Return the files in `folder` that name lost flights."""
    matches = ((_LOST.fullmatch(name), folder / name) for name in names_in(folder))
    return [Lost(int(m[1]), int(m[2]), path) for m, path in matches if m]


def free_name(folder: Path, ending: str) -> Path:
    """Return a path for a damaged file, which nothing in `folder` has."""
    names = (f"damaged-{number}{ending}" for number in count(1))
    taken = set(names_in(folder))
    return folder / next(n for n in names if not {n, f"{n}-wal"} & taken)
