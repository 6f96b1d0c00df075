"""Accepted, durable, not yet in a block.

A transaction gets its id when it is accepted, and is on the disk before `accept` returns. The
mempool is a log in segments, `mempool/pending-FIRST.log`, named after the first id in them. One
`accept` is one record, so a batch is in the ledger whole or not at all. A record, little-endian:

    4  magic "FCM1"          4  bytes of the payload       4  CRC-32 of what follows
    8  first id              4  number of flights          8  acceptance, UTC milliseconds
    …  payload: JSON, a list of flights, each a list of its 19 values

An id is a position in the ledger, so whatever has an id below the chain's transaction count is
mined and everything else is pending: nothing is marked, and dying anywhere loses nothing and mines
nothing twice. Segments are removed only when the block *after* theirs is sealed.

Any number of processes accept and read. Ids are given under a lock between processes; the sync
comes after it, and one sync serves every thread that wrote before it began (group commit).
"""

import os
import struct
import threading
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from backend.chain.flight import Flight
from backend.errors import DamagedMempool, TryLater, WriteFailed
from backend.settings import Settings
from backend.storage import files

FOLDER = "mempool"
LOCK_NAME = "mempool.lock"
SEGMENT_BYTES = 4 * 2**20

_MAGIC = b"FCM1"
_PREFIX = struct.Struct("<4sII")
_CONTENT = struct.Struct("<QIQ")
_HEAD_BYTES = _PREFIX.size + _CONTENT.size

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[int | str | None, ...]]).decode


@dataclass(frozen=True, slots=True)
class Accepted:
    """Flights that were accepted together, or a part of them.

    first_transaction: id of the first. timestamp: acceptance, UTC milliseconds.
    """

    first_transaction: int
    timestamp: int
    flights: list[Flight]


@dataclass(frozen=True, slots=True)
class _Record:
    """Where a record stands. segment: first id of its file. offset, length: bytes."""

    first: int
    count: int
    timestamp: int
    segment: int
    offset: int
    length: int

    @property
    def next(self) -> int:
        return self.first + self.count


def segment_name(first_transaction: int) -> str:
    """The name of the segment whose first id this is."""
    return f"pending-{first_transaction:016d}.log"


class Mempool:
    """The pending transactions of the ledger in `settings.folder`, shared by processes."""

    def __init__(
        self,
        settings: Settings,
        chain_transactions: Callable[[], int],
        report: Callable[[str], None],
    ) -> None:
        """chain_transactions: how many transactions blocks hold now, so the first pending id.

        report: takes what was put right in the log, line by line.
        """
        self._settings = settings
        self._chain_transactions = chain_transactions
        self._report = report
        self._folder = settings.folder / FOLDER
        self._between_processes = files.FileLock(settings.folder / LOCK_NAME)
        self._accepting = threading.Lock()  # held while waiting for other processes
        self._lock = threading.Lock()  # held for moments: what follows
        self._records: list[_Record] = []
        self._segment: int | None = None  # the segment that is read now
        self._offset = 0  # how far it has been read
        self._next = 0  # the id after the last one in the log
        self._last_timestamp = 0
        self._named = -1  # the segment whose name is known to be on the disk
        self._descriptors: dict[int, int] = {}
        self._syncing = threading.Lock()
        self._synced = (-1, 0)  # segment and offset up to which all is on the disk
        self._failed = False

    def close(self) -> None:
        """Close every descriptor."""
        with self._lock:
            for descriptor in self._descriptors.values():
                os.close(descriptor)
            self._descriptors.clear()

    # --- accepting ---------------------------------------------------------------------------

    def accept(self, flights: Sequence[Flight], now_ms: int) -> Accepted:
        """Give ids to valid flights; they are on the disk when this returns.

        now_ms: UTC milliseconds; an acceptance time never goes back. Raises TryLater when the
        mempool or the disk is full, WriteFailed, or DamagedMempool.
        """
        self._require_sound()
        try:
            with self.exclusive():
                accepted, written = self._write(flights, now_ms)
        except WriteFailed:
            self._failed = True
            raise
        self._sync(written)
        return accepted

    def _require_sound(self) -> None:
        if self._failed:
            raise WriteFailed("the mempool could not be written; restart the service")

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While this is held nobody gives ids: for sealing others than pending transactions."""
        files.make_folder(self._folder)
        with self._accepting, self._between_processes:
            with self._lock:
                self._read_on(repair=True)
            yield

    def _write(self, flights: Sequence[Flight], now_ms: int) -> tuple[Accepted, tuple[int, int]]:
        mined = self._chain_transactions()
        with self._lock:
            self._forget(mined)
            first = max(self._next, mined)
            self._require_room(first - mined + len(flights))
            timestamp = max(now_ms, self._last_timestamp)
            data = _packed(first, timestamp, flights)
            files.require_free(self._folder, self._settings.min_free_bytes + len(data))
            segment = self._segment_for(first, mined)
            path = self._folder / segment_name(segment)
            if segment != self._named:  # its maker may have died before it could do this
                files.sync_folder(self._folder)
                self._named = segment
            files.write_at(self._descriptor(segment), data, self._offset, path)
            self._read_on(repair=True)
            return Accepted(first, timestamp, list(flights)), (segment, self._offset)

    def _require_room(self, pending: int) -> None:
        most = self._settings.mempool_transactions
        if pending > most:
            raise TryLater(
                f"the mempool is full: {pending} pending transactions, at most {most} may be",
                retry_after_s=max(1, round(self._settings.mine_interval_s)),
            )

    def _segment_for(self, first: int, mined: int) -> int:
        """The segment for id `first`; a new one if the old one is done, full, or left behind."""
        current = self._segment
        is_done = self._offset > 0 and mined >= self._next
        is_full = self._offset >= SEGMENT_BYTES
        if current is not None and first == self._next and not (is_done or is_full):
            return current
        if current is not None and self._offset:
            files.sync(self._descriptor(current), self._folder / segment_name(current))
        self._segment, self._offset, self._next = first, 0, first
        path = self._folder / segment_name(first)
        self._descriptors[first] = files.open_for_writing(path)  # which syncs its name
        self._named = first
        files.sync_folder(self._folder.parent)
        return first

    def _sync(self, written: tuple[int, int]) -> None:
        """Group commit: return when everything up to `written` is on the disk.

        The system reports a failed sync once, so whoever comes after one must fail, too.
        """
        with self._syncing:
            self._require_sound()
            if self._synced >= written:
                return
            with self._lock:
                segment = written[0] if self._segment is None else self._segment
                reached = (segment, self._offset)
                if segment != written[0]:  # a later segment was begun, which synced this one
                    return
                descriptor = os.dup(self._descriptor(segment))  # another thread may close it
            try:
                files.sync(descriptor, self._folder / segment_name(segment))
            except WriteFailed:
                self._failed = True
                raise
            finally:
                os.close(descriptor)
            self._synced = reached

    # --- reading -----------------------------------------------------------------------------

    def pending_count(self) -> int:
        """How many accepted transactions are in no block yet."""
        return self._pending_range()[1]

    def pending(self, limit: int) -> list[Accepted]:
        """The oldest pending transactions, at most `limit`, in order of their ids.

        Raises DamagedMempool if the chain has fewer transactions than it must: then some were lost.
        """
        start, count = self._pending_range()
        found: list[Accepted] = []
        with self._lock:
            for record in self._records:
                if count <= 0 or limit <= 0:
                    break
                if record.next > start:
                    part = self._part(record, start, limit)
                    found.append(part)
                    start += len(part.flights)
                    limit -= len(part.flights)
        return found

    def find(self, transaction_id: int) -> tuple[Flight, int] | None:
        """A pending transaction: its flight and acceptance time; None if it is not in the log."""
        with self._lock:
            self._read_on(repair=False)
            after = bisect_right(self._records, transaction_id, key=lambda record: record.first)
            record = self._records[after - 1] if after else None
            if record is None or transaction_id >= record.next:
                return None
            part = self._part(record, transaction_id, 1)
            return part.flights[0], part.timestamp

    def _pending_range(self) -> tuple[int, int]:
        """First pending id and number of pending transactions."""
        with self._lock:
            self._read_on(repair=False)
            mined = self._chain_transactions()  # after the log: it must not be behind
            self._forget(mined)
            if not self._records:
                return mined, 0
            if self._records[0].first > mined:
                raise DamagedMempool(
                    f"the chain ends at transaction {mined - 1}, but the oldest pending one is "
                    f"{self._records[0].first}: the chain has lost blocks; restore it from a copy"
                )
            return mined, self._next - mined

    def _forget(self, mined: int) -> None:
        """Drop what is mined, and the descriptors of segments that are no longer needed."""
        del self._records[: bisect_right(self._records, mined, key=lambda record: record.next)]
        needed = {record.segment for record in self._records} | {self._segment}
        for segment in [s for s in self._descriptors if s not in needed]:
            os.close(self._descriptors.pop(segment))

    def _part(self, record: _Record, start: int, limit: int) -> Accepted:
        """Up to `limit` flights of a record from id `start` on."""
        data = os.pread(self._descriptor(record.segment), record.length, record.offset)
        if _record_at(data, 0, record.segment, record.offset) != record:
            path = self._folder / segment_name(record.segment)
            raise DamagedMempool(f"{path}, byte {record.offset}: the record has changed")
        flights: list[Flight] = list(_decode(data[_HEAD_BYTES:]))
        skip = max(0, start - record.first)
        return Accepted(record.first + skip, record.timestamp, flights[skip : skip + limit])

    def _read_on(self, *, repair: bool) -> None:
        """Take in what other processes have written.

        repair: the caller holds the lock between processes, so an incomplete record at the end was
        left by somebody who died, and is cut off.
        """
        segments = [s for s in self._segments() if self._segment is None or s >= self._segment]
        for segment in segments:
            try:
                self._descriptor(segment)
            except FileNotFoundError:  # trimmed in this very moment
                continue
            if segment != self._segment:
                self._begin(segment)
            rest = self._read_segment(segment)
            if rest and segment != segments[-1]:
                raise DamagedMempool(f"{self._here()}: a damaged record, and later segments")
            if rest and repair:
                self._cut_off(segment, rest)

    def _segments(self) -> list[int]:
        """The first ids of all segments, in order."""
        if not self._folder.exists():
            return []
        names = [n for n in os.listdir(self._folder) if n.startswith("pending-")]  # noqa: PTH208
        return sorted(int(n.removeprefix("pending-").removesuffix(".log")) for n in names)

    def _begin(self, segment: int) -> None:
        """Go on to the next segment. Only an import, which seals blocks itself, may leave a gap."""
        has_gap = self._segment is not None and segment > self._next
        if has_gap and self._chain_transactions() < segment:
            raise DamagedMempool(f"transactions {self._next} to {segment - 1} are missing")
        self._segment, self._offset, self._next = segment, 0, max(self._next, segment)

    def _read_segment(self, segment: int) -> bytes:
        """Read the records that were added; what is left over is not a whole record."""
        descriptor = self._descriptor(segment)
        data = memoryview(os.pread(descriptor, os.fstat(descriptor).st_size, self._offset))
        at = 0
        while record := _record_at(data, at, segment, self._offset):
            if record.first != self._next:
                raise DamagedMempool(f"{self._here()}: id {record.first} instead of {self._next}")
            self._records.append(record)
            self._next, self._last_timestamp = record.next, record.timestamp
            self._offset += record.length
            at += record.length
        return bytes(data[at:])

    def _cut_off(self, segment: int, rest: bytes) -> None:
        at = rest.find(_MAGIC, 1)
        while at >= 0:
            if _record_at(rest, at, segment, 0):
                raise DamagedMempool(f"{self._here()}: a damaged record before whole ones")
            at = rest.find(_MAGIC, at + 1)
        files.cut(self._descriptor(segment), self._offset, self._folder / segment_name(segment))
        self._report(
            f"{self._here()}: an incomplete record of {len(rest)} bytes was cut off; "
            "it was never acknowledged"
        )

    def _here(self) -> str:
        """The file and the byte that is read next, for messages."""
        return f"{self._folder / segment_name(self._segment or 0)}, byte {self._offset}"

    def _descriptor(self, segment: int) -> int:
        if segment not in self._descriptors:
            path = self._folder / segment_name(segment)
            self._descriptors[segment] = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        return self._descriptors[segment]

    # --- trimming ----------------------------------------------------------------------------

    def trim(self, below: int) -> None:
        """Remove the segments of which every id is below `below`; the newest always stays."""
        with self.exclusive():
            for first, following in pairwise(self._segments()):
                if following <= below:
                    files.remove(self._folder / segment_name(first))


def _packed(first: int, timestamp: int, flights: Sequence[Flight]) -> bytes:
    payload = _encode(flights)
    content = _CONTENT.pack(first, len(flights), timestamp) + payload
    return _PREFIX.pack(_MAGIC, len(payload), zlib.crc32(content)) + content


def _record_at(data: bytes | memoryview, at: int, segment: int, offset: int) -> _Record | None:
    """The record that starts `at` in `data`, or None if there is no whole one."""
    if len(data) - at < _HEAD_BYTES:
        return None
    magic, payload_bytes, crc = _PREFIX.unpack_from(data, at)
    length = _HEAD_BYTES + payload_bytes
    content = data[at + _PREFIX.size : at + length]
    if magic != _MAGIC or len(data) - at < length or zlib.crc32(content) != crc:
        return None
    first, count, timestamp = _CONTENT.unpack_from(data, at + _PREFIX.size)
    return _Record(first, count, timestamp, segment, offset, length)
