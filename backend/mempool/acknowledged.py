"""Remembers how far flights have been acknowledged, in `acknowledged.dat` in the chain's folder.

The log alone cannot tell that its end is missing: a record that was never finished looks the same
as one that was acknowledged and then damaged. So this file names the id after the last acknowledged
one. It is written between the sync of the log and the answer, and is not synced itself: after a
power cut it may hold an older number, with which less damage is noticed. If it names ids that the
log lacks, then the disk has lost what it had said was synced, and these ids are known to be lost.
In the same way it tells whether the file of idempotency keys must be there, and where the oldest
and the newest segment of the log begin: a segment whose flights are all in blocks may still hold
keys.

The file is outside the mempool's folder, so that the loss of the whole folder is noticed. It is
locked while it is written, so its numbers only grow. They are little-endian:

    8  the id after the last acknowledged one     8  transactions that blocks held then
    8  until when the file of keys must be there, UTC milliseconds; 0 if there never was one
    8  id at which the oldest segment begins, or above it
    8  id below which the newest segment begins; 0 if there never was one
    4  CRC-32 of the 40 bytes before
"""

import fcntl
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from backend.errors import WriteFailed, WriterBusy
from backend.storage import files

NAME = "acknowledged.dat"

_NUMBERS = struct.Struct("<QQQQQ")
_CRC = struct.Struct("<I")
_BYTES = _NUMBERS.size + _CRC.size


class Mark(NamedTuple):
    """The numbers in the file.

    next: the id after the last acknowledged one. mined: how many transactions blocks held then.
    keys_until: until when the file of keys must be there, UTC milliseconds. oldest: the oldest
    segment of the log begins at this id or below it. newest_below: the newest segment begins below
    this id; 0 if there never was a segment.
    """

    next: int = 0
    mined: int = 0
    keys_until: int = 0
    oldest: int = 0
    newest_below: int = 0

    def lacks_segments(self, firsts: Sequence[int]) -> bool:
        """Whether a log whose segments begin at these ids, in order, lacks its oldest or newest."""
        if not self.newest_below:
            return False
        return not firsts or firsts[0] > self.oldest or firsts[-1] + 1 < self.newest_below


class Acknowledged:
    """Reads and writes the file in the chain's `folder`. Each thread needs its own object."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._descriptor: int | None = None

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read(self) -> Mark | None:
        """The numbers in the file; None if it is missing or damaged."""
        descriptor = self._opened()
        return None if descriptor is None else _mark_in(os.pread(descriptor, _BYTES + 1, 0))

    def is_there(self) -> bool:
        """Whether the file exists, even if it is damaged."""
        return self._opened() is not None

    def note(self, mark: Mark) -> None:
        """Raise the file's numbers to those of `mark`; greater ones stay. Raises WriteFailed."""
        with files.refusals("note", self._path):
            descriptor = self._opened()
            if descriptor is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                descriptor = self._descriptor = os.open(self._path, flags, files.LOCK_MODE)
            try:
                files.lock_within(descriptor, files.LOCK_PATIENCE_S, self._path)
                known = _mark_in(os.pread(descriptor, _BYTES + 1, 0))
                if known is None:
                    os.ftruncate(descriptor, 0)  # nothing of a damaged one must be left
                raised = Mark(*map(max, mark, known or Mark()))
                os.pwrite(descriptor, _packed(raised), 0)
            except WriterBusy as error:
                raise WriteFailed(str(error)) from error
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _opened(self) -> int | None:
        """The descriptor of the file; None if the file does not exist."""
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            self.close()
        if self._descriptor is None:
            try:
                self._descriptor = files.open_existing(self._path)
            except FileNotFoundError:
                return None
        return self._descriptor


def _packed(mark: Mark) -> bytes:
    data = _NUMBERS.pack(*mark)
    return data + _CRC.pack(zlib.crc32(data))


def _mark_in(data: bytes) -> Mark | None:
    numbers, crc = data[: _NUMBERS.size], data[_NUMBERS.size :]
    if len(data) != _BYTES or _CRC.pack(zlib.crc32(numbers)) != crc:
        return None
    return Mark(*_NUMBERS.unpack(numbers))
