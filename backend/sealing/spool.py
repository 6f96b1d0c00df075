"""Keeps what the check of an import has read on the disk, until all of it has been checked.

The file has no name: the system removes it with the last process that has it open, however that
process ends. A flight takes about 17 bytes in it, a little more than in a block.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

import msgspec
import zstandard

from backend.base.files import make_folder, read_at, refusals, write_at
from backend.chain.fields import Value
from backend.sources.source import FlightColumns

ZSTD_LEVEL = 1
LENGTH_BYTES = 4

_decoder = msgspec.msgpack.Decoder(list[list[Value]])


class Spool:
    """A temporary file in a folder, which a child fills and its parent or another child reads.

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

    def append_flights(self, columns: FlightColumns) -> None:
        """Write a batch of flights at the end. Raises WriteFailed."""
        data = zstandard.compress(msgspec.msgpack.encode(columns), ZSTD_LEVEL)
        self.append(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    def flights(self, start: int, end: int) -> Iterator[tuple[FlightColumns, int]]:
        """Yield each batch of flights between two bytes, and the byte at which it ends."""
        while start < end:
            length = int.from_bytes(self.read(LENGTH_BYTES, start), "little")
            data = self.read(length, start + LENGTH_BYTES)
            start += LENGTH_BYTES + length
            yield _decoder.decode(zstandard.decompress(data)), start

    def close(self) -> None:
        """Close the file; if no other process has it open, that removes it."""
        self._file.close()
