"""Temporary files for what is long: they are on a disk, where memory may be scarce."""

import os
from functools import cache
from io import BytesIO
from tempfile import TemporaryFile, gettempdir
from typing import IO

ON_DISK = "/var/tmp"  # noqa: S108  the folder for temporary files that is never in memory
WRITTEN_BYTES = 256 * 1024  # how much of a body goes to the disk at a time


def body_file(length: int, most_in_memory: int) -> IO[bytes]:
    """Return an empty file for a body of `length` bytes: on a disk if it is longer than the most.

    It has no name there, and is gone when it is closed.
    """
    if length <= most_in_memory:
        return BytesIO()
    return TemporaryFile(dir=folder_on_disk(), buffering=WRITTEN_BYTES)


@cache
def folder_on_disk() -> str:
    """Return the folder for long files. Other temporary ones may be in memory, as in our units."""
    return ON_DISK if os.access(ON_DISK, os.W_OK) else gettempdir()
