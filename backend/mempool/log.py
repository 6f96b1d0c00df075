"""Reads and appends the mempool's log: records in segments, whose names `segments` defines.

A `Log` is what one process has read of the log. Every process takes in what others have written.
The process that holds the lock between processes appends, puts right what is wrong, and removes
segments. Every process notices what is wrong: bytes that are no record, ids that are missing
between two records or at the end, files that are gone or shorter than they were. Without the lock,
that raises NeedsRepair.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from backend.chain.flight import Flight
from backend.errors import DamagedMempool, NeedsRepair
from backend.mempool.acknowledged import Acknowledged, Mark
from backend.mempool.idempotency_keys import Keys
from backend.mempool.record import Accepted, Record, flights_in, key_in, mended, record_at
from backend.mempool.salvage import SEGMENTS_MISSING, Salvage, require_blocks
from backend.mempool.segments import Segment, all_segments_in, names_in, segments_of
from backend.storage import files
from backend.words import counted

SEGMENT_BYTES = 4 * 2**20

_first_of, _next_of = attrgetter("first"), attrgetter("next")


class End(NamedTuple):
    """How far a log goes; the later of two ends is the greater one.

    next: the id after the last one there. It comes first, because ids only grow, while a file that
    is damaged may become shorter. segment, offset: where it ends, in bytes of that segment. mined:
    how many transactions blocks held when that was written. oldest: the id at which the log begins.
    """

    next: int
    segment: Segment
    offset: int
    mined: int
    oldest: int

    def mark(self) -> Mark:
        """The mark to note when all up to here is on the disk."""
        newest_below = self.segment.first + 1
        return Mark(self.next, self.mined, oldest=self.oldest, newest_below=newest_below)


NOTHING = End(0, Segment(-1), 0, 0, 0)


class Log:
    """Reads and appends the log in `folder`. It is not safe for threads."""

    def __init__(
        self,
        folder: Path,
        chain_transactions: Callable[[], int],
        keys: Keys,
        acknowledged: Acknowledged,
        report: Callable[[str], None],
    ) -> None:
        """keys: gets the idempotency keys of all records. The others are as in `Mempool`."""
        self._folder = folder
        self._chain_transactions = chain_transactions
        self._keys = keys
        self._acknowledged = acknowledged
        self._report = report
        self.records: list[Record] = []  # in the order of their ids
        self.next = 0  # the id after the last one
        self._mark: Mark | None = None  # how far flights were acknowledged at the last reading
        self.last_timestamp = 0
        self._mined = 0  # the number in the last record
        self._is_of_earlier_release = True  # whether every record is that was read
        self._forgotten = 0  # ids below it have been dropped
        self._names: list[str] = []  # the files in the folder at the last reading
        self._existing: list[Segment] = []  # the segments among them
        self._segment: Segment | None = None  # the segment that is read now
        self._offset = 0  # how far it has been read
        self._named: Segment | None = None  # the segment whose name is known to be on the disk
        self._descriptors: dict[Segment, int] = {}
        self._missing_at = 0  # the id at which a segment is missing between two others; 0 for none
        self._reported = (0, 0)  # `newest_below` and `_missing_at` of the last report about that
        self._path = (NOTHING.segment, folder)  # the segment that was asked for last, and its path
        self._decoded: tuple[Record, list[Flight]] | None = None  # the record read last

    def close(self) -> None:
        """Close every descriptor."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _reset(self) -> None:
        """Forget all that was read, except `last_timestamp`: acceptance times never go back."""
        self.close()
        self._keys.forget_log()
        self.records.clear()
        self._segment, self._offset, self.next = None, 0, 0
        self._missing_at = 0
        self._named, self._decoded = None, None
        self._forgotten = 0
        self._is_of_earlier_release = True

    @property
    def end(self) -> End:
        """How far the log has been read. Any other end is greater than `NOTHING`."""
        if self._segment is None:
            return NOTHING
        oldest = self._existing[0] if self._existing else self._segment
        return End(self.next, self._segment, self._offset, self._mined, oldest.first)

    def path(self, segment: Segment) -> Path:
        """The path of a segment."""
        known, path = self._path
        if known != segment:
            path = self._folder / segment.name
            self._path = (segment, path)
        return path

    # --- appending ---------------------------------------------------------------------------

    def append(self, data: bytes, first: int, mined: int) -> None:
        """Write a record, which is not synced yet. Only under the lock between processes.

        first: its first id. mined: how many transactions blocks hold. Raises WriteFailed.
        """
        segment = self._segment_for(first, mined)
        if segment != self._named:  # the process that made it may have died before this
            files.sync_folder(self._folder)
            self._named = segment
        files.write_at(self.descriptor(segment), data, self._offset, self.path(segment))
        self._take_in(data, segment)  # what others wrote was read when the lock was taken

    def _segment_for(self, first: int, mined: int) -> Segment:
        """The segment for id `first`: the newest one, or a new one.

        A new one is made if all flights of the newest are mined, if it is full, or if `first` is
        not its next id.
        """
        current = self._segment
        is_done = self._offset > 0 and mined >= self.next
        is_full = self._offset >= SEGMENT_BYTES
        if current is not None and first == self.next and not (is_done or is_full):
            return current
        if current is not None:
            if not self._offset:  # the process that made it died before it wrote a record
                self.next = first
                return current
            files.sync(self.descriptor(current), self.path(current))
        segment = Segment(first if current is None else self.next)
        self._segment, self._offset, self.next = segment, 0, first
        files.make_folder(self._folder)  # it may have been removed
        self._descriptors[segment] = files.open_for_writing(self.path(segment))  # syncs its name
        self._named = segment
        files.sync_folder(self._folder.parent)
        return segment

    def trim(self, below: int, now_ms: int) -> None:
        """Remove the segments whose ids are all below `below`; the newest always stays.

        Only under the lock between processes. Raises WriteFailed, or DamagedMempool if a segment's
        keys cannot be kept; that segment stays then.
        """
        for segment, following in pairwise(all_segments_in(self._folder)):
            if following.first <= below:
                if until := self._keys.keep(segment.first, following.first, now_ms):
                    self._acknowledged.note(Mark(keys_until=until))
                self._acknowledged.note(Mark(oldest=following.first))
                files.remove(self.path(segment))

    def note_mined(self) -> None:
        """Note how many transactions blocks hold. Raises WriteFailed."""
        mined = self._chain_transactions()
        known = self._acknowledged.read() or Mark()
        if mined > known.mined:
            self._acknowledged.note(Mark(mined, mined))

    def require_no_blocks(self) -> None:
        """Raise DamagedMempool if blocks have held transactions here at some time."""
        mark = self._acknowledged.read() or Mark()
        if mark.mined:
            raise DamagedMempool(
                f"there are no blocks, but they held {counted(mark.mined, 'transaction')} once: is "
                "the disk mounted? If it is, restore the chain from a backup; for a new chain, use "
                "an empty folder"
            )

    # --- reading -----------------------------------------------------------------------------

    def forget(self, mined: int) -> None:
        """Drop the records of mined flights, and the descriptors that only they needed."""
        if mined < self._forgotten and self._chain_transactions() < self._forgotten:
            self._reset()  # the newest block was torn: what was in it is pending again
            self._read_on()
        self._forgotten = max(mined, self._forgotten)
        del self.records[: self.place_after(mined)]
        oldest = self.records[0].segment if self.records else self._segment
        for segment in [s for s in self._descriptors if oldest is not None and s < oldest]:
            os.close(self._descriptors.pop(segment))
        if self._decoded is not None and self._decoded[0].next <= mined:
            self._decoded = None  # it may be a large batch

    def place_after(self, below: int) -> int:
        """The position in `records` of the first record with an id of at least `below`."""
        return bisect_right(self.records, below, key=_next_of)

    def flight_at(self, transaction_id: int, *, repair: bool) -> tuple[Flight, int] | None:
        """A transaction's flight and acceptance time; None if it is not in the log.

        repair: whether the caller repairs the log when this raises NeedsRepair, as in `part`.
        """
        after = bisect_right(self.records, transaction_id, key=_first_of)
        record = self.records[after - 1] if after else None
        if record is None or transaction_id >= record.next:
            return None
        part = self.part(record, transaction_id, 1, repair=repair)
        return part.flights[0], part.timestamp

    def part(self, record: Record, start: int, limit: int, *, repair: bool) -> Accepted:
        """Up to `limit` flights of a record from id `start` on. Raises NeedsRepair.

        repair: whether the caller repairs the log then. If not, a record in which one bit has
        flipped since it was read before is returned without that flip.
        """
        if self._decoded is None or self._decoded[0] != record:
            self._decoded = (record, self._flights_in(record, repair=repair))
        flights = self._decoded[1]
        skip = max(0, start - record.first)
        return Accepted(record.first + skip, record.timestamp, flights[skip : skip + limit])

    def _flights_in(self, record: Record, *, repair: bool) -> list[Flight]:
        descriptor = self.descriptor(record.segment)
        try:
            data = os.pread(descriptor, record.length, record.offset)
        except OSError as error:
            raise self._named_in(error, record.segment) from error
        if record_at(data, 0, record.segment, record.offset) != record:
            data = self._mended(data, record, repair=repair)
        return flights_in(data, record)

    def _mended(self, data: bytes, record: Record, *, repair: bool) -> bytes:
        """The original bytes of a record that was whole when it was read before."""
        where = f"{self.path(record.segment)}, byte {record.offset}"
        whole = mended(data, 0)
        if whole is None or record_at(whole, 0, record.segment, record.offset) != record:
            raise NeedsRepair(f"{where}: the record has changed on the disk")
        if repair:
            raise NeedsRepair(f"{where}: a bit has flipped on the disk")
        self._report(f"{where}: a bit has flipped on the disk; the record is read as it was before")
        return whole

    def whole_segments(self) -> Iterator[tuple[str, bytes]]:
        """The file name of each segment, and its bytes as far as they have been read."""
        ends = {record.segment: record.offset + record.length for record in self.records}
        for segment, end in ends.items():
            yield self.path(segment).name, os.pread(self.descriptor(segment), end, 0)

    def read_on(self, *, repair: bool) -> None:
        """Take in what other processes have written.

        repair: whether the caller holds the lock between processes, so that damage is put right. If
        not, damage raises NeedsRepair; an incomplete record at the end is still being written.
        """
        if not repair:
            self._read_on()
            return
        try:
            if self._read_on():
                self.put_right()
        except NeedsRepair:
            self.put_right()
        if self._mark is None:
            self._make_mark_anew()
        else:
            self._report_missing_segments(self._mark)

    def _report_missing_segments(self, mark: Mark) -> None:
        """Report once that a segment is gone whose flights are in blocks."""
        is_lacking = mark.lacks_segments([segment.first for segment in self._existing])
        found = (mark.newest_below if is_lacking else 0, self._missing_at)
        if any(found) and found != self._reported:
            self._report(f"{self._folder}: {SEGMENTS_MISSING}")
            self._reported = found

    def put_right(self) -> None:
        """Put the log on the disk right, and read it again.

        Only under the lock between processes. Raises DamagedMempool if that cannot be done.
        """
        mark = self._acknowledged.read()
        Salvage(self._folder, self._chain_transactions(), mark, self._report).run()
        self._reset()
        if self._read_on():
            raise NeedsRepair(f"{self._here()}: it was damaged again right after its repair")

    def _make_mark_anew(self) -> None:
        """Note all of the log and the chain as acknowledged, because all of it may have been."""
        if self._segment is not None and self._offset:
            files.sync(self.descriptor(self._segment), self.path(self._segment))
            self._report(self._why_mark_is_new())
        mined = self._chain_transactions()
        self._acknowledged.note(Mark(max(self.next, mined), mined))

    def _why_mark_is_new(self) -> str:
        if self._is_of_earlier_release and not self._acknowledged.is_there():
            return "acknowledged.dat is new in this release, and has been made from the log"
        return (
            "acknowledged.dat was missing or damaged and has been made anew from the log; "
            "if the log's end was lost before, nobody can tell"
        )

    def _read_on(self) -> bytes:
        """Take in what is new. Returns the bytes at the log's end that are no whole record."""
        self._mark = self._acknowledged.read()  # read before the log, so that the log is not behind
        mark = self._mark or Mark()
        self._look_for_changes()
        existing = self._existing
        self._keys.kept_until = mark.keys_until
        self._keys.forget(below=existing[0].first if existing else 0)
        rest, is_trimmed = b"", False
        for segment in [s for s in existing if self._segment is None or s >= self._segment]:
            if rest:
                raise NeedsRepair(f"{self._here()}: the record is damaged, and is not the last one")
            try:
                self.descriptor(segment)
            except FileNotFoundError:  # it has just been trimmed
                is_trimmed = True
                continue
            if segment != self._segment:
                if self.next and self.next < segment.first and not is_trimmed:
                    self._missing_at = self.next
                self._segment, self._offset = segment, 0
            rest = self._read_segment(segment)
        self._require_all(mark)
        return rest

    def _look_for_changes(self) -> None:
        """Read all again if a segment is gone or replaced from which something is still needed."""
        gone: set[Segment] = set()
        if (names := names_in(self._folder)) != self._names:
            existing = segments_of(names)
            gone = set(self._existing).difference(existing)
            self._names, self._existing = names, existing
        if self._is_replaced() or (gone and (self._segment in gone or self._needs(gone))):
            self._reset()

    def _is_replaced(self) -> bool:
        """Whether a file that is open has been removed, and another may have its name."""
        return any(
            os.fstat(descriptor).st_nlink == 0
            for segment, descriptor in self._descriptors.items()
            if segment == self._segment or segment in self._existing
        )

    def _needs(self, segments: set[Segment]) -> bool:
        pending = self.records[self.place_after(self._chain_transactions()) :]
        return any(record.segment in segments for record in pending)

    def _require_all(self, mark: Mark) -> None:
        """Raise NeedsRepair if acknowledged flights are missing at the end of the log."""
        if mark.next <= self.next:
            return
        first = max(self.next, self._chain_transactions())
        if first < mark.next:
            require_blocks(first, mark.mined)
            raise NeedsRepair(
                f"transactions {first} to {mark.next - 1} were acknowledged and are missing after "
                f"{self._here()}"
            )

    def read_more(self) -> None:
        """Take in what was added to the segment being read; faster than `read_on`."""
        if self._segment is None:
            self._read_on()
        else:
            self._read_segment(self._segment)

    def _read_segment(self, segment: Segment) -> bytes:
        """Take in the records that were added. Returns the rest, which is no whole record."""
        descriptor = self.descriptor(segment)
        try:
            size = os.fstat(descriptor).st_size
            added = size - self._offset
            data = os.pread(descriptor, added, self._offset) if added > 0 else b""
        except OSError as error:
            raise self._named_in(error, segment) from error
        if added < 0:
            raise NeedsRepair(f"{self._here()}: the file now ends at byte {size}")
        return self._take_in(data, segment)

    def _take_in(self, read: bytes, segment: Segment) -> bytes:
        """Take in the records in `read`. Returns the rest, which is no whole record."""
        data, at = memoryview(read), 0
        while record := record_at(data, at, segment, self._offset):
            if record.first != self.next:
                self._require_follows(record)
            self.records.append(record)
            if keyed := key_in(data[at : at + record.length], record):
                self._keys.add(*keyed)
            self.next, self.last_timestamp = record.next, record.timestamp
            self._mined = record.mined
            self._is_of_earlier_release &= record.is_of_earlier_release
            self._offset += record.length
            at += record.length
        return bytes(data[at:])

    def _require_follows(self, record: Record) -> None:
        """Raise NeedsRepair or DamagedMempool if ids are missing before `record`.

        Ids that are in blocks may be missing: imported flights never were in the log.
        """
        mined = self._chain_transactions()
        if self.next < record.first <= mined:
            return
        require_blocks(max(self.next, mined), record.mined)
        raise NeedsRepair(f"{self._here()}: id {record.first} instead of {max(self.next, mined)}")

    def _here(self) -> str:
        """The file and byte where reading goes on, for messages."""
        return f"{self.path(self._segment or Segment(0))}, byte {self._offset}"

    def _named_in(self, error: OSError, segment: Segment) -> OSError:
        """The error with the segment's path, which errors of an open file lack."""
        return OSError(error.errno, error.strerror, str(self.path(segment)))

    def descriptor(self, segment: Segment) -> int:
        """The descriptor of a segment. Raises FileNotFoundError if it has been removed."""
        if segment not in self._descriptors:
            self._descriptors[segment] = files.open_existing(self.path(segment))
        return self._descriptors[segment]
