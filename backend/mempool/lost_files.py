"""Names and lists what is kept of a damaged mempool, beside the store.

The service never overwrites or removes these files, so that a person can look at them:

    lost-FIRST-COUNT.bin     so many flights from id FIRST on are lost; says where they stood
    damaged-NEXT.sqlite      the store as it was found, when its records ended at id NEXT; its
                             write-ahead log has the same name with "-wal" at the end

A number follows if a name is taken. The last release also wrote `damaged-NEXT.bin` and
`perhaps-acknowledged-NEXT.bin`.
"""

import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.words import counted

_ASIDE = re.compile(r"(?:damaged|perhaps-acknowledged)-\d+(?:\.\d+)?\.(?:bin|sqlite)", re.ASCII)
_LOST = re.compile(r"lost-(\d+)-(\d+)(?:\.\d+)?\.bin", re.ASCII)
NAME_FORM = re.compile(rf"(?:{_ASIDE.pattern}(?:-wal)?|{_LOST.pattern})", re.ASCII)


class Lost(NamedTuple):
    """A file that names lost flights: `flights` of them from id `first` on."""

    first: int
    flights: int
    path: Path


def names_in(folder: Path) -> list[str]:
    """The names of all files in `folder`, in no order; none if it is not there."""
    try:
        return os.listdir(folder)  # noqa: PTH208  this is asked often
    except FileNotFoundError:
        return []


def aside_in(folder: Path) -> list[Path]:
    """The damaged files in `folder`."""
    return sorted(folder / name for name in names_in(folder) if _ASIDE.fullmatch(name))


def lost_in(folder: Path) -> list[Lost]:
    """The files in `folder` that name lost flights, oldest ids first."""
    matches = ((_LOST.fullmatch(name), folder / name) for name in names_in(folder))
    return sorted(Lost(int(m[1]), int(m[2]), path) for m, path in matches if m)


def lost_words(first: int, flights: int, lost: Path) -> str:
    """The message about lost flights and the file that names them."""
    return (
        f"{counted(flights, 'acknowledged flight is lost', 'acknowledged flights are lost')}, "
        f"transactions {first} to {first + flights - 1}; "
        f"void entries take their places, and {lost} keeps what is known of them: post them "
        "again, then move that file out of the folder; idempotency keys that came with them may be "
        "used again"
    )


def aside_words(aside: Path) -> str:
    """The message about a damaged file that was kept."""
    return f"a damaged file of the mempool is kept as {aside}: look at it, then move it"


def bytes_of(path: Path) -> bytes:
    """The bytes of a file; none if it is not there."""
    return path.read_bytes() if path.exists() else b""


def keep(folder: Path, stem: str, ending: str, data: bytes, log: bytes = b"") -> Path:
    """Keep bytes in a file whose name begins with `stem`. Returns its path.

    log: the bytes of its write-ahead log, which are kept beside it.
    """
    paths = (folder / f"{stem}{number}{ending}" for number in _numbers())
    # a file with the same bytes was made by a process that died in this place
    aside = next(p for p in paths if not p.exists() or _kept_as(p) == (data, log))
    if not aside.exists():
        if log:  # first, because it is not looked for without the file
            files.write_new(_log_of(aside), log)
        files.write_new(aside, data)
    return aside


def _kept_as(path: Path) -> tuple[bytes, bytes]:
    return path.read_bytes(), bytes_of(_log_of(path))


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _numbers() -> Iterator[str]:
    """The endings that are tried until a name is not taken: none, `.2`, `.3` and so on."""
    yield ""
    for number in count(2):
        yield f".{number}"
