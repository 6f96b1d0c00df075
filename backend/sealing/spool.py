"""Keeps what the check of an import has read on the disk, until all of it has been checked.

The file has no name: the system removes it with the last process that has it open, however that
process ends. A flight takes about 25 bytes in it, 8 of them for the hash of its leg.
"""

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from struct import Struct
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec
import zstandard

from backend.base.files import make_folder, read_at, refusals, write_at
from backend.chain.fields import Value
from backend.sources.source import FlightColumns

ZSTD_LEVEL = 1
_LENGTHS = Struct("<II")  # of hashes and of flights, in bytes

_decoder = msgspec.msgpack.Decoder(list[list[Value]])


class Batch(NamedTuple):
    """A batch of flights in a spool.

    legs: hashes of their legs, if these were given. read: returns them. end: the byte at which the
    batch ends.
    """

    legs: "array[int]"
    read: Callable[[], FlightColumns]
    end: int


def packed(columns: FlightColumns) -> bytes:
    """Return a batch of flights as it stands in a spool."""
    return zstandard.compress(msgspec.msgpack.encode(columns), ZSTD_LEVEL)


class Spool:
    """A temporary file in a folder, which a process fills and it or its child reads.

    end: how many bytes this process has appended.
    """

    def __init__(self, folder: Path) -> None:
        """Make the file, and the folder if it is not there. Raises WriteFailed."""
        self._path = folder / "temporary file of the import"  # for messages
        make_folder(folder)
        with refusals("make", self._path):
            self._file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  close() closes it
        self.end = 0

    def append(self, data: bytes) -> None:
        """Write `data` at the end. Raises WriteFailed."""
        write_at(self._file.fileno(), data, self.end, self._path)
        self.end += len(data)

    def read(self, length: int, offset: int) -> bytes:
        """Return that many bytes from `offset` on. Raises WriteFailed."""
        return read_at(self._file.fileno(), length, offset, self._path)

    def path(self) -> Path:
        """Return a path at which the file can be opened while this process or a child has it."""
        return Path(f"/proc/self/fd/{self._file.fileno()}")

    def append_flights(self, data: bytes, legs: "array[int] | None" = None) -> None:
        """Write a batch of flights that is `packed` at the end. Raises WriteFailed.

        legs: hashes of their legs.
        """
        hashes = legs.tobytes() if legs else b""
        self.append(_LENGTHS.pack(len(hashes), len(data)) + hashes + data)

    def batches(self, start: int, end: int) -> Iterator[Batch]:
        """Yield each batch of flights between two bytes."""
        while start < end:
            hash_bytes, data_bytes = _LENGTHS.unpack(self.read(_LENGTHS.size, start))
            legs = array("q", self.read(hash_bytes, start + _LENGTHS.size))
            place = start + _LENGTHS.size + hash_bytes
            start = place + data_bytes
            yield Batch(legs, partial(self._flights, data_bytes, place), start)

    def _flights(self, length: int, offset: int) -> FlightColumns:
        return _decoder.decode(zstandard.decompress(self.read(length, offset)))

    def close(self) -> None:
        """Close the file; if no other process has it open, that removes it."""
        self._file.close()
