"""Checks names and entries that others wrote before they become paths that are read or written.

A name that comes from a file, a request or a peer must be a bare name of a form that the caller
knows. So it cannot lead out of the folder that it is put below. An entry of a folder that somebody
else has filled must be a regular file or a folder: a symbolic link leads anywhere, and reading a
pipe or a device never ends.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from re import Pattern

from backend.base.errors import InvalidInput

MOST_BYTES = 255  # in the name of a file, as all common file systems have it


def bare_name(name: str, *forms: Pattern[str]) -> str:
    """Return `name` if it has one of the forms and can only name a file in a folder.

    Raises InvalidInput. The form alone decides about letters; no form lets a separator pass.
    """
    is_bare = name not in {"", ".", ".."} and not {"/", "\\", "\0"} & set(name)
    is_short = len(name.encode(errors="replace")) <= MOST_BYTES
    if not (is_bare and is_short and any(form.fullmatch(name) for form in forms)):
        raise InvalidInput("file name", name, "is not the name of a file that belongs here")
    return name


def strange_entry(path: Path) -> Path | None:
    """Return the first entry at or below `path` that is neither a regular file nor a folder.

    None if there is none, or nothing at all. Raises OSError for what cannot be looked at.
    """
    return next((p for p in _entries(path) if not _is_plain(p)), None)


def _entries(path: Path) -> Iterator[Path]:
    yield path
    if path.is_dir() and not path.is_symlink():
        for inner in sorted(path.iterdir()):
            yield from _entries(inner)


def _is_plain(path: Path) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
