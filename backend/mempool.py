"""Accepted, durable, not yet in a block.

A transaction gets its id when it is accepted, and is on the disk before `accept` returns. The
mempool is a log in segments, `mempool/pending-FIRST.log`, named after the first id in them. One
`accept` is one record, so a batch is in the ledger whole or not at all. A record, little-endian:

    4  magic "FCM1"          4  bytes of the payload       4  CRC-32 of what follows
    8  first id              4  number of flights          8  acceptance, UTC milliseconds
    …  payload: JSON, a list of flights, each a list of its 19 values; or, if they came with an
       idempotency key, {"key": …, "body": its SHA-256, "flights": such a list}

An id is a position in the ledger, so whatever has an id below the chain's transaction count is
mined and everything else is pending: nothing is marked, and dying anywhere loses nothing and mines
nothing twice. Segments are removed only when the block *after* theirs is sealed.

Any number of processes accept and read. Ids are given under a lock between processes; the sync
comes after it, and one sync serves every thread that wrote before it began (group commit). Who asks
for it is answered before the sync, which then follows within `ASYNC_SYNC_S`.

A key is used once a day: whoever comes with it again, in whatever process, gets what the first got.
It is as durable as the flights, being in the same record; before a segment is removed, its keys go
to `keys` (see there).
"""

import logging
import os
import re
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
from backend.keys import IdempotencyKey, Keys, KeyUse
from backend.settings import Settings
from backend.storage import files

FOLDER = "mempool"
LOCK_NAME = "mempool.lock"
SEGMENT_BYTES = 4 * 2**20
ASYNC_SYNC_S = 0.5

_MAGIC = b"FCM1"
_PREFIX = struct.Struct("<4sII")
_CONTENT = struct.Struct("<QIQ")
_SEGMENT = re.compile(r"pending-(\d{16})\.log", re.ASCII)
_HEAD_BYTES = _PREFIX.size + _CONTENT.size

_log = logging.getLogger(__name__)

_Flights = list[tuple[int | str | None, ...]]


class _Keyed(msgspec.Struct):
    key: str
    body: str
    flights: _Flights


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Flights | _Keyed).decode


@dataclass(frozen=True, slots=True)
class Accepted:
    """Flights that were accepted together, or a part of them.

    first_transaction: id of the first. timestamp: acceptance, UTC milliseconds. is_repeat: they
    were accepted before, under the same idempotency key.
    """

    first_transaction: int
    timestamp: int
    flights: list[Flight]
    is_repeat: bool = False


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
        self._sync_soon = _SyncSoon(self._sync)
        self._keys = Keys(self._folder)
        self._pending_copies = _Copies()
        self._decoded: tuple[_Record, list[Flight]] | None = None  # the record read last
        self._failed = False

    def close(self) -> None:
        """Sync what was accepted without it, and close every descriptor."""
        self._sync_soon.close()
        with self._lock:
            for descriptor in self._descriptors.values():
                os.close(descriptor)
            self._descriptors.clear()

    # --- accepting ---------------------------------------------------------------------------

    def accept(
        self,
        flights: Sequence[Flight],
        now_ms: int,
        *,
        durable: bool = True,
        key: IdempotencyKey | None = None,
    ) -> Accepted:
        """Give ids to valid flights; they are on the disk when this returns.

        now_ms: UTC milliseconds; an acceptance time never goes back. durable: if false, they are
        only written when this returns (a power cut may take them), and synced soon. key: if it was
        used in the last day, nothing is accepted and the earlier ids are returned. Raises TryLater
        when the mempool or the disk is full, KeyReused, WriteFailed, or DamagedMempool.
        """
        self._require_sound()
        try:
            with self.exclusive():
                use = self._keys.find(key, now_ms) if key else None
                if use is not None:
                    accepted = Accepted(use.first, use.timestamp, list(flights), is_repeat=True)
                    written = (-1, 0) if self._segment is None else (self._segment, self._offset)
                else:
                    accepted, written = self._write(flights, now_ms, key)
        except WriteFailed:
            self._failed = True
            raise
        if durable:
            self._sync(written)
        else:
            self._sync_soon.add(written)
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

    def _write(
        self, flights: Sequence[Flight], now_ms: int, key: IdempotencyKey | None
    ) -> tuple[Accepted, tuple[int, int]]:
        mined = self._chain_transactions()
        with self._lock:
            self._forget(mined)
            first = max(self._next, mined)
            self._require_room(first - mined + len(flights))
            timestamp = max(now_ms, self._last_timestamp)
            data = _packed(first, timestamp, flights, key)
            files.require_free(self._folder, self._settings.min_free_bytes + len(data))
            segment = self._segment_for(first, mined)
            path = self._folder / segment_name(segment)
            if segment != self._named:  # its maker may have died before it could do this
                files.sync_folder(self._folder)
                self._named = segment
            files.write_at(self._descriptor(segment), data, self._offset, path)
            self._read_segment(segment)  # what others wrote was read when this was locked
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

    def copies_of(self, flights: Sequence[Flight]) -> list[int | None]:
        """For each flight the id of a pending transaction that equals it in all fields, or None."""
        with self._lock:
            self._read_on(repair=False)
            mined = self._chain_transactions()
            self._forget(mined)
            for record in self._records[self._place_after(self._pending_copies.next) :]:
                start = max(record.first, self._pending_copies.next)
                part = self._part(record, start, record.count)
                self._pending_copies.add(start, part.flights)
            self._pending_copies.forget(mined)
            return [self._copy_of(flight) for flight in flights]

    def _copy_of(self, flight: Flight) -> int | None:
        candidate = self._pending_copies.candidate(flight)
        if candidate is None:
            return None
        found = self._flight_at(candidate)
        return candidate if found is not None and found[0] == flight else None

    # --- reading -----------------------------------------------------------------------------

    def pending_count(self) -> int:
        """How many accepted transactions are in no block yet."""
        return self._pending_range()[1]

    def oldest_pending_at(self) -> int | None:
        """When the oldest pending transaction was accepted, UTC milliseconds; None without any."""
        _, count = self._pending_range()
        with self._lock:
            return self._records[0].timestamp if count and self._records else None

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
            return self._flight_at(transaction_id)

    def _flight_at(self, transaction_id: int) -> tuple[Flight, int] | None:
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
        del self._records[: self._place_after(mined)]
        oldest = self._records[0].segment if self._records else self._segment
        for segment in [s for s in self._descriptors if oldest is not None and s < oldest]:
            os.close(self._descriptors.pop(segment))
        if self._decoded is not None and self._decoded[0].next <= mined:
            self._decoded = None  # it may be a large batch

    def _place_after(self, below: int) -> int:
        """The place of the first record that has an id of at least `below`."""
        return bisect_right(self._records, below, key=lambda record: record.next)

    def _part(self, record: _Record, start: int, limit: int) -> Accepted:
        """Up to `limit` flights of a record from id `start` on."""
        if self._decoded is None or self._decoded[0] != record:
            self._decoded = (record, self._flights_in(record))
        flights = self._decoded[1]
        skip = max(0, start - record.first)
        return Accepted(record.first + skip, record.timestamp, flights[skip : skip + limit])

    def _flights_in(self, record: _Record) -> list[Flight]:
        data = os.pread(self._descriptor(record.segment), record.length, record.offset)
        if _record_at(data, 0, record.segment, record.offset) != record:
            path = self._folder / segment_name(record.segment)
            raise DamagedMempool(f"{path}, byte {record.offset}: the record has changed")
        payload = _decode(data[_HEAD_BYTES:])
        return list(payload.flights if isinstance(payload, _Keyed) else payload)

    def _read_on(self, *, repair: bool) -> None:
        """Take in what other processes have written.

        repair: the caller holds the lock between processes, so an incomplete record at the end was
        left by somebody who died, and is cut off.
        """
        existing = self._segments()
        self._keys.forget(below=existing[0] if existing else 0)
        segments = [s for s in existing if self._segment is None or s >= self._segment]
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
        names = os.listdir(self._folder)  # noqa: PTH208  this is asked often
        return sorted(int(match[1]) for name in names if (match := _SEGMENT.fullmatch(name)))

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
            self._take_key(record, data[at + _HEAD_BYTES : at + record.length])
            self._next, self._last_timestamp = record.next, record.timestamp
            self._offset += record.length
            at += record.length
        return bytes(data[at:])

    def _take_key(self, record: _Record, payload: memoryview) -> None:
        if payload[0] == ord("{"):
            keyed = _decode(payload)
            assert isinstance(keyed, _Keyed)
            use = KeyUse(keyed.body, record.first, record.count, record.timestamp)
            self._keys.add(keyed.key, use)

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
        """Remove the segments of which every id is below `below`; the newest always stays.

        Raises WriteFailed.
        """
        with self.exclusive():
            for first, following in pairwise(self._segments()):
                if following <= below:
                    self._keys.keep(first, following)
                    files.remove(self._folder / segment_name(first))


class _SyncSoon:
    """A thread that syncs for those who do not wait; it runs only while there is something."""

    def __init__(self, sync: Callable[[tuple[int, int]], None]) -> None:
        self._sync = sync
        self._lock = threading.Lock()
        self._written: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def add(self, written: tuple[int, int]) -> None:
        """Have everything up to `written` (segment and offset) synced within `ASYNC_SYNC_S`."""
        with self._lock:
            self._written = max(written, self._written or written)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sync soon", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._closing.wait(ASYNC_SYNC_S)
            with self._lock:
                written, self._written = self._written, None
                if written is None:
                    self._thread = None
                    return
            try:
                self._sync(written)
            except WriteFailed as error:  # the mempool remembers, and refuses from now on
                _log.error("flights that were accepted before they were durable: %s", error)

    def close(self) -> None:
        """Sync what is left, and end the thread."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()


class _Copies:
    """Where pending flights stand, by their hash, to recognise one that comes again.

    Hashes and not flights: a hundred thousand may be pending. next: the id up to which they have
    been taken in.
    """

    def __init__(self) -> None:
        self.next = 0
        self._first_with: dict[int, int] = {}  # in the order of ids

    def add(self, first: int, flights: Sequence[Flight]) -> None:
        """Take in pending flights; their ids start at `first`."""
        for transaction_id, flight in enumerate(flights, first):
            self._first_with.setdefault(hash(flight), transaction_id)
        self.next = first + len(flights)

    def forget(self, mined: int) -> None:
        """Drop ids below `mined`."""
        if next(iter(self._first_with.values()), mined) < mined:
            self._first_with = {h: i for h, i in self._first_with.items() if i >= mined}

    def candidate(self, flight: Flight) -> int | None:
        """The id of the flight that, to all appearances, equals `flight`."""
        return self._first_with.get(hash(flight))


def _packed(
    first: int, timestamp: int, flights: Sequence[Flight], key: IdempotencyKey | None = None
) -> bytes:
    if key is None:
        payload = _encode(flights)
    else:
        payload = _encode(_Keyed(key.text, key.body_hash, list(flights)))
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
