"""Remembers how far flights have been acknowledged, in `acknowledged.dat` in the chain's folder.

The store alone cannot tell that its end is missing: SQLite drops in silence what follows a flipped
bit in its write-ahead log, and an older copy of the file looks like the file. So this one names the
id after the last acknowledged flight. It is written between the sync of the store and the answer,
and is not synced itself: after a power cut it may hold older numbers, with which less damage is
noticed. If it names ids that the store lacks, then these ids are known to be lost.

The file is outside the mempool's folder, so that the loss of the whole folder is noticed. It is
locked while it is written, so its numbers only grow. They are little-endian:

    4  magic "FCA3"      32 hash of block 0, which names the ledger; zeros before there is one
    8  the id after the last acknowledged one     8  transactions that blocks held then
    4  CRC-32 of what is before

The last release wrote 44 bytes without magic and name, and counted imported flights, which no
mempool ever held, as acknowledged. They are read, and replaced.
"""

import fcntl
import os
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import DamagedMempool, WriteFailed, WriterBusy
from backend.base.words import Report
from backend.storage.layout import MARK_NAME

WRITTEN_ANEW = (
    f"{MARK_NAME} was missing or damaged and was rebuilt from the mempool; it is unknown whether "
    "the end of the mempool was lost before"
)

_MAGIC = b"FCA3"
_CONTENT = struct.Struct("<4s32sQQ")
_NO_GENESIS = bytes(32)
_CRC_BYTES = 4
_BYTES = _CONTENT.size + _CRC_BYTES
_LAST_RELEASE = struct.Struct("<QQ24x")


class Mark(NamedTuple):
    """The numbers in the file.

    next: the id after the last acknowledged one; 0 if there never was one. mined: how many
    transactions blocks held then. genesis: the hash of block 0 in hexadecimal, or "".
    """

    next: int = 0
    mined: int = 0
    genesis: str = ""

    @property
    def end(self) -> int:
        """Ids below this one were given: blocks or the mempool must hold them."""
        return max(self.next, self.mined)


class Watermark:
    """Reads and writes the file in the chain's `folder`; threads may share it."""

    def __init__(
        self, folder: Path, genesis: Callable[[], str], report: Report = lambda line: None
    ) -> None:
        """genesis: gives the hash of block 0 in hexadecimal, or "" before there is one.

        report: takes a message if a damaged or missing file is written anew.
        """
        self._report = report
        self._path = folder / MARK_NAME
        self._genesis = genesis
        self._lock = threading.Lock()
        self._descriptor: int | None = None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read(self) -> Mark | None:
        """Return the numbers in the file; None if it is missing or damaged.

        Raises DamagedMempool if the file belongs to another ledger, or this user may not open it.
        """
        with self._lock:
            try:
                descriptor = self._opened()
            except OSError as error:
                raise DamagedMempool(f"cannot open {files.reason_of(error, self._path)}") from error
            return None if descriptor is None else self._ours(os.pread(descriptor, _BYTES + 1, 0))

    def note(self, mark: Mark) -> None:
        """Raise the file's numbers to those of `mark`; greater ones stay. Raises WriteFailed."""
        with self._lock, files.refusals("note", self._path):
            descriptor = self._opened()
            if descriptor is None:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                descriptor = self._descriptor = os.open(self._path, flags, files.LOCK_MODE)
            try:
                files.lock_within(descriptor, files.LOCK_PATIENCE_S, self._path)
                data = os.pread(descriptor, _BYTES + 1, 0)
                known = self._ours(data)
                if known is None and (data or mark.next):
                    self._report(WRITTEN_ANEW)
                if known is None or len(data) != _BYTES:
                    os.ftruncate(descriptor, 0)  # nothing of another format must be left
                os.pwrite(descriptor, self._packed(known or Mark(), mark), 0)
            except WriterBusy as error:
                raise WriteFailed(str(error)) from error
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _packed(self, known: Mark, mark: Mark) -> bytes:
        """Return the greater numbers of both, as bytes."""
        genesis = bytes.fromhex(self._genesis() or known.genesis) or _NO_GENESIS
        numbers = (max(known.next, mark.next), max(known.mined, mark.mined))
        return _with_crc(_CONTENT.pack(_MAGIC, genesis, *numbers))

    def _ours(self, data: bytes) -> Mark | None:
        mark, genesis = _mark_in(data), self._genesis()
        if mark is not None and mark.genesis and genesis and mark.genesis != genesis:
            raise DamagedMempool(
                f"{self._path} belongs to another ledger: its block 0 is {mark.genesis}, this "
                f"ledger's is {genesis}. Nothing is accepted or mined: put this ledger's own file "
                "back; without it, it is unknown whether the end of the mempool was lost"
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


def _with_crc(content: bytes) -> bytes:
    return content + zlib.crc32(content).to_bytes(_CRC_BYTES, "little")


def _mark_in(data: bytes) -> Mark | None:
    content = data[:-_CRC_BYTES]
    if len(data) < _CRC_BYTES or _with_crc(content) != data:
        return None
    if len(content) == _LAST_RELEASE.size:
        following, mined = _LAST_RELEASE.unpack(content)
        return Mark(following if following > mined else 0, mined)
    if len(content) != _CONTENT.size or not content.startswith(_MAGIC):
        return None
    _, genesis, following, mined = _CONTENT.unpack(content)
    return Mark(following, mined, genesis.hex() if genesis != _NO_GENESIS else "")
