"""The mempool's log: records in segments, `mempool/pending-FIRST.log`, named after their first id.

A `Log` is what one process has read of it. Readers take in what others have written; whoever holds
the lock between processes appends, cuts off what somebody left who died while writing, and removes
segments. Everything else that is wrong is damage, and named.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from backend.chain.flight import Flight
from backend.errors import DamagedMempool
from backend.keys import Keys
from backend.mempool.record import (
    HEAD_BYTES,
    MAGIC,
    Accepted,
    Record,
    flights_in,
    key_in,
    record_at,
)
from backend.storage import files

SEGMENT_BYTES = 4 * 2**20

_SEGMENT = re.compile(r"pending-(\d{16})\.log", re.ASCII)

End = tuple[int, int]  # how far a log goes: the first id of a segment, and an offset in it


def segment_name(first_transaction: int) -> str:
    """The name of the segment whose first id this is."""
    return f"pending-{first_transaction:016d}.log"


class Log:
    """The log in `folder`. Not safe for threads."""

    def __init__(
        self,
        folder: Path,
        chain_transactions: Callable[[], int],
        keys: Keys,
        report: Callable[[str], None],
    ) -> None:
        """keys: is told of the keys of all records. The others are as in `Mempool`."""
        self._folder = folder
        self._chain_transactions = chain_transactions
        self._keys = keys
        self._report = report
        self.records: list[Record] = []  # in the order of their ids
        self.next = 0  # the id after the last one
        self.last_timestamp = 0
        self._segment: int | None = None  # the segment that is read now
        self._offset = 0  # how far it has been read
        self._named = -1  # the segment whose name is known to be on the disk
        self._descriptors: dict[int, int] = {}
        self._path = (-1, folder)  # of the segment that was asked for last
        self._decoded: tuple[Record, list[Flight]] | None = None  # the record read last

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    @property
    def end(self) -> End:
        """How far it has been read; everything ends behind (-1, 0)."""
        return (-1, 0) if self._segment is None else (self._segment, self._offset)

    def path(self, segment: int) -> Path:
        """Where a segment stands."""
        first, path = self._path
        if first != segment:
            path = self._folder / segment_name(segment)
            self._path = (segment, path)
        return path

    # --- appending ---------------------------------------------------------------------------

    def append(self, data: bytes, first: int, mined: int) -> None:
        """Write a record, which is not synced yet. Only under the lock between processes.

        first: its first id. mined: how many transactions blocks hold. Raises WriteFailed.
        """
        segment = self._segment_for(first, mined)
        if segment != self._named:  # its maker may have died before it could do this
            files.sync_folder(self._folder)
            self._named = segment
        files.write_at(self.descriptor(segment), data, self._offset, self.path(segment))
        self._take_in(data, segment)  # what others wrote was read when this was locked

    def _segment_for(self, first: int, mined: int) -> int:
        """The segment for id `first`; a new one if the old one is done, full, or left behind."""
        current = self._segment
        is_done = self._offset > 0 and mined >= self.next
        is_full = self._offset >= SEGMENT_BYTES
        if current is not None and first == self.next and not (is_done or is_full):
            return current
        if current is not None and self._offset:
            files.sync(self.descriptor(current), self.path(current))
        self._segment, self._offset, self.next = first, 0, first
        self._descriptors[first] = files.open_for_writing(self.path(first))  # syncs its name
        self._named = first
        files.sync_folder(self._folder.parent)
        return first

    def trim(self, below: int) -> None:
        """Remove the segments of which every id is below `below`; the newest always stays.

        Only under the lock between processes. Raises WriteFailed.
        """
        for first, following in pairwise(self._segments()):
            if following <= below:
                self._keys.keep(first, following)
                files.remove(self.path(first))

    # --- reading -----------------------------------------------------------------------------

    def forget(self, mined: int) -> None:
        """Drop what is mined, and the descriptors of segments that are no longer needed."""
        del self.records[: self.place_after(mined)]
        oldest = self.records[0].segment if self.records else self._segment
        for segment in [s for s in self._descriptors if oldest is not None and s < oldest]:
            os.close(self._descriptors.pop(segment))
        if self._decoded is not None and self._decoded[0].next <= mined:
            self._decoded = None  # it may be a large batch

    def place_after(self, below: int) -> int:
        """The place of the first record that has an id of at least `below`."""
        return bisect_right(self.records, below, key=lambda record: record.next)

    def flight_at(self, transaction_id: int) -> tuple[Flight, int] | None:
        """A transaction: its flight and acceptance time; None if it is not in the log."""
        after = bisect_right(self.records, transaction_id, key=lambda record: record.first)
        record = self.records[after - 1] if after else None
        if record is None or transaction_id >= record.next:
            return None
        part = self.part(record, transaction_id, 1)
        return part.flights[0], part.timestamp

    def part(self, record: Record, start: int, limit: int) -> Accepted:
        """Up to `limit` flights of a record from id `start` on."""
        if self._decoded is None or self._decoded[0] != record:
            self._decoded = (record, self._flights_in(record))
        flights = self._decoded[1]
        skip = max(0, start - record.first)
        return Accepted(record.first + skip, record.timestamp, flights[skip : skip + limit])

    def _flights_in(self, record: Record) -> list[Flight]:
        data = os.pread(self.descriptor(record.segment), record.length, record.offset)
        if record_at(data, 0, record.segment, record.offset) != record:
            path = self.path(record.segment)
            raise DamagedMempool(f"{path}, byte {record.offset}: the record has changed")
        return flights_in(data[HEAD_BYTES:])

    def whole_segments(self) -> Iterator[tuple[str, bytes]]:
        """The file name of each segment, and its bytes as far as they have been read."""
        ends = {record.segment: record.offset + record.length for record in self.records}
        for segment, end in ends.items():
            yield self.path(segment).name, os.pread(self.descriptor(segment), end, 0)

    def read_on(self, *, repair: bool) -> None:
        """Take in what other processes have written.

        repair: the caller holds the lock between processes, so an incomplete record at the end was
        left by somebody who died, and is cut off.
        """
        existing = self._segments()
        self._keys.forget(below=existing[0] if existing else 0)
        segments = [s for s in existing if self._segment is None or s >= self._segment]
        for segment in segments:
            try:
                self.descriptor(segment)
            except FileNotFoundError:  # trimmed in this very moment
                continue
            if segment != self._segment:
                self._begin(segment)
            rest = self._read_segment(segment)
            if rest and segment != segments[-1]:
                raise DamagedMempool(f"{self._here()}: a damaged record, and later segments")
            if rest and repair:
                self._cut_off(segment, rest)

    def read_more(self) -> None:
        """Take in what stands in the segment that is read now: less than `read_on`, and sooner."""
        if self._segment is None:
            self.read_on(repair=False)
        else:
            self._read_segment(self._segment)

    def _segments(self) -> list[int]:
        """The first ids of all segments, in order."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208  this is asked often
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name)))

    def _begin(self, segment: int) -> None:
        """Go on to the next segment. Only an import, which seals blocks itself, may leave a gap."""
        has_gap = self._segment is not None and segment > self.next
        if has_gap and self._chain_transactions() < segment:
            raise DamagedMempool(f"transactions {self.next} to {segment - 1} are missing")
        self._segment, self._offset, self.next = segment, 0, max(self.next, segment)

    def _read_segment(self, segment: int) -> bytes:
        """Read the records that were added; what is left over is not a whole record."""
        descriptor = self.descriptor(segment)
        return self._take_in(
            os.pread(descriptor, os.fstat(descriptor).st_size, self._offset), segment
        )

    def _take_in(self, read: bytes, segment: int) -> bytes:
        """Take in the records at the end of what is known; the rest is not a whole record."""
        data, at = memoryview(read), 0
        while record := record_at(data, at, segment, self._offset):
            if record.first != self.next:
                raise DamagedMempool(f"{self._here()}: id {record.first} instead of {self.next}")
            self.records.append(record)
            if keyed := key_in(data[at + HEAD_BYTES : at + record.length], record):
                self._keys.add(*keyed)
            self.next, self.last_timestamp = record.next, record.timestamp
            self._offset += record.length
            at += record.length
        return bytes(data[at:])

    def _cut_off(self, segment: int, rest: bytes) -> None:
        at = rest.find(MAGIC, 1)
        while at >= 0:
            if record_at(rest, at, segment, 0):
                raise DamagedMempool(f"{self._here()}: a damaged record before whole ones")
            at = rest.find(MAGIC, at + 1)
        files.cut(self.descriptor(segment), self._offset, self.path(segment))
        self._report(
            f"{self._here()}: an incomplete record of {len(rest)} bytes was cut off; "
            "it was never acknowledged"
        )

    def _here(self) -> str:
        """The file and the byte that is read next, for messages."""
        return f"{self.path(self._segment or 0)}, byte {self._offset}"

    def descriptor(self, segment: int) -> int:
        """The open file of a segment. Raises FileNotFoundError if it has been removed."""
        if segment not in self._descriptors:
            self._descriptors[segment] = files.open_existing(self.path(segment))
        return self._descriptors[segment]
