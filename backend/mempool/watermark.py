"""Remembers how far flights have been acknowledged, in `acknowledged.dat` in the chain's folder.

The store alone cannot tell that its end is missing: SQLite drops in silence what follows a flipped
bit in its write-ahead log, and an older copy of the file looks like the file. So this one names the
id after the last acknowledged flight, and the id after the last record of the store. It is written
between the sync of the store and the answer, and is not synced itself: after a power cut it may
hold older numbers, with which less damage is noticed. If it names ids that the store lacks, then
these ids are known to be lost.

The file is outside the mempool's folder, so that the loss of the whole folder is noticed. It is
locked while it is written, so its numbers only grow. They are little-endian:

    4  magic "FCA2"      32 hash of block 0, which names the ledger; zeros before there is one
    8  the id after the last acknowledged one     8  transactions that blocks held then
    8  the id after the last record of the store
    4  CRC-32 of what is before

The last release wrote 44 bytes without magic and name. They are read, and replaced.
"""

import fcntl
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import DamagedMempool, WriteFailed, WriterBusy
from backend.base.words import Report

NAME = "acknowledged.dat"
WRITTEN_ANEW = (
    f"{NAME} was missing or damaged and has been made anew from the mempool; if the mempool's end "
    "was lost before, nobody can tell"
)

_MAGIC = b"FCA2"
_CONTENT = struct.Struct("<4s32sQQQ")
_NO_GENESIS = bytes(32)
_CRC = struct.Struct("<I")
_BYTES = _CONTENT.size + _CRC.size
_LAST_RELEASE = struct.Struct("<QQQQQ")
_LAST_RELEASE_BYTES = _LAST_RELEASE.size + _CRC.size


class Mark(NamedTuple):
    """The numbers in the file.

    next: the id after the last acknowledged one. mined: how many transactions blocks held then.
    stored: the id after the last record of the store; 0 if there never was one, or if the last
    release wrote the file. genesis: the hash of block 0 in hexadecimal, or "".
    """

    next: int = 0
    mined: int = 0
    stored: int = 0
    genesis: str = ""


class Watermark:
    """Reads and writes the file in the chain's `folder`. Each thread needs its own object."""

    def __init__(
        self,
        folder: Path,
        genesis: Callable[[], str],
        report: Report = lambda line: None,
    ) -> None:
        """genesis: gives the hash of block 0 in hexadecimal, or "" before there is one.

        report: takes a message if a damaged or missing file is written anew.
        """
        self._report = report
        self._path = folder / NAME
        self._genesis = genesis
        self._descriptor: int | None = None

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read(self) -> Mark | None:
        """Return the numbers in the file; None if it is missing or damaged.

        Raises DamagedMempool if the file belongs to another ledger.
        """
        descriptor = self._opened()
        return None if descriptor is None else self._ours(os.pread(descriptor, _BYTES + 1, 0))

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
                data = os.pread(descriptor, _BYTES + 1, 0)
                known = self._ours(data)
                if known is None and (data or mark.stored):
                    self._report(WRITTEN_ANEW)
                if known is None or len(data) != _BYTES:
                    os.ftruncate(descriptor, 0)  # nothing of another format must be left
                os.pwrite(descriptor, _packed(self._raised(known or Mark(), mark)), 0)
            except WriterBusy as error:
                raise WriteFailed(str(error)) from error
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _raised(self, known: Mark, mark: Mark) -> Mark:
        return Mark(
            max(known.next, mark.next),
            max(known.mined, mark.mined),
            max(known.stored, mark.stored),
            self._genesis() or known.genesis,
        )

    def _ours(self, data: bytes) -> Mark | None:
        mark, genesis = _mark_in(data), self._genesis()
        if mark is not None and mark.genesis and genesis and mark.genesis != genesis:
            raise DamagedMempool(
                f"{self._path} belongs to another ledger, whose block 0 is {mark.genesis}; this "
                f"one's is {genesis}. Nothing is accepted or mined: put this ledger's own file "
                "back; without any, nobody can tell whether the end of the mempool was lost"
            )
        return mark

    def _opened(self) -> int | None:
        """Return the descriptor of the file; None if the file does not exist."""
        if self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0:
            self.close()
        if self._descriptor is None:
            try:
                self._descriptor = files.open_existing(self._path)
            except FileNotFoundError:
                return None
        return self._descriptor


def _packed(mark: Mark) -> bytes:
    genesis = bytes.fromhex(mark.genesis) or _NO_GENESIS
    data = _CONTENT.pack(_MAGIC, genesis, mark.next, mark.mined, mark.stored)
    return data + _CRC.pack(zlib.crc32(data))


def _mark_in(data: bytes) -> Mark | None:
    content, crc = data[: -_CRC.size], data[-_CRC.size :]
    if len(crc) != _CRC.size or _CRC.pack(zlib.crc32(content)) != crc:
        return None
    if len(data) == _LAST_RELEASE_BYTES:
        following, mined, *_ = _LAST_RELEASE.unpack(content)
        return Mark(following, mined)
    if len(data) != _BYTES or not data.startswith(_MAGIC):
        return None
    _, genesis, following, mined, stored = _CONTENT.unpack(content)
    return Mark(following, mined, stored, genesis.hex() if genesis != _NO_GENESIS else "")
