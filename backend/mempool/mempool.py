"""Accepts flights, gives them ids, and tells what is pending; processes share it.

A transaction gets its id when it is accepted, and is on the disk before `accept_all` returns. One
offer is one record of the log, so a batch is in the ledger whole or not at all.

An id is a position in the ledger, so transactions with ids below the chain's transaction count are
mined and all others are pending. Nothing needs to be marked, so a crash at any moment loses nothing
and mines nothing twice. Segments are removed only when the block *after* theirs is sealed.

Damage to the log is put right by the next process that accepts or seals (`salvage`). Until then
processes that only read get TryLater. A flight that was acknowledged is mined, or named as lost.

Any number of processes accept and read. Ids are given under a lock between processes. The sync
comes after the lock, and one sync serves every thread that wrote before it began (group commit).
Offers that come together (`accept_all`) share the lock, too. A request that does not ask for
durability is answered before the sync, which then follows within `ASYNC_SYNC_S`.

An idempotency key is used once a day: a request that repeats it, in whatever process, gets the ids
that the first one got. It is as durable as its flights, because it is in the same record; before a
segment is removed, `idempotency_keys` copies its keys to a file.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from backend.chain.flight import Flight
from backend.clock import EARLIEST_MS
from backend.clock import now_ms as clock_now_ms
from backend.errors import (
    Damage,
    DamagedMempool,
    FlightchainError,
    NeedsRepair,
    TryLater,
    WriteFailed,
    WriterBusy,
)
from backend.mempool.acknowledged import Acknowledged
from backend.mempool.copies import Copies
from backend.mempool.idempotency_keys import IdempotencyKey, Keys
from backend.mempool.log import Log
from backend.mempool.record import Accepted, packed
from backend.mempool.salvage import lost_words
from backend.mempool.segments import lost_in
from backend.mempool.syncs import GroupCommit, SyncSoon
from backend.settings import Settings
from backend.storage import files, unfinished_restore
from backend.words import counted

FOLDER = "mempool"
LOCK_NAME = "mempool.lock"

Found = TypeVar("Found")
Refused = FlightchainError | OSError  # the outcome of an offer that is not accepted


class Offer(NamedTuple):
    """Flights to be accepted, all or none.

    key: if it was used in the last day, nothing is accepted and the earlier ids are given again.
    durable: if false, they are written but synced only soon after they are accepted, so a power cut
    may take them. finds_copies: whether pending flights that equal them are looked for.
    """

    flights: Sequence[Flight]
    key: IdempotencyKey | None = None
    durable: bool = True
    finds_copies: bool = True


class Mempool:
    """The pending transactions of the ledger in `settings.folder`, shared by processes."""

    def __init__(
        self,
        settings: Settings,
        chain_transactions: Callable[[], int],
        report: Callable[[str], None],
    ) -> None:
        """chain_transactions: how many transactions blocks hold now, which is the first pending id.

        report: takes messages about what was put right in the log, one at a time.
        """
        self._settings = settings
        self._chain_transactions = chain_transactions
        self._report = report
        self._chain_folder = settings.folder
        self._folder = self._chain_folder / FOLDER
        self._between_processes = files.FileLock(settings.folder / LOCK_NAME)
        self._has_folder = False
        self._accepting = threading.Lock()  # held while waiting for other processes
        self._exclusive_thread = -1  # the thread that holds both
        self._lock = threading.Lock()  # held for moments: the log and the copies
        self._keys = Keys(self._folder)
        # one for users of the log, and one for syncs, which happen in other threads
        marks = self._marks = (Acknowledged(settings.folder), Acknowledged(settings.folder))
        self._log = Log(self._folder, chain_transactions, self._keys, marks[0], report)
        self._copies = Copies()
        self._commit = GroupCommit(self._log, self._lock, marks[1])
        self._sync_soon = SyncSoon(self._commit.sync)

    def close(self) -> None:
        """Sync what was accepted without a sync, and close every descriptor."""
        self._sync_soon.close()
        with self._lock:
            self._log.close()
            for mark in self._marks:
                mark.close()

    # --- accepting ---------------------------------------------------------------------------

    def accept_all(self, offers: Sequence[Offer], now_ms: int) -> list[Accepted | Refused]:
        """Give ids to the flights of each offer, in their order, and make them durable together.

        now_ms: UTC milliseconds; an acceptance time never goes back. An error that concerns one
        offer is that offer's outcome: TryLater when the mempool or the disk is full, KeyReused, and
        DamagedMempool or OSError if what must be looked up cannot be read. An error that concerns
        all is raised: WriteFailed, DamagedMempool, OSError, or TryLater if others hold the lock for
        long.
        """
        self._commit.require_sound()
        if any(offer.finds_copies for offer in offers):
            self._catch_up()
        try:
            with self.exclusive() as mined:
                free = files.free_bytes(self._folder)  # once for all: posts are small
                outcomes = [self._accept(offer, now_ms, mined, free) for offer in offers]
                written = self._log.end
        except WriteFailed:
            self._commit.fail()
            raise
        pairs = zip(offers, outcomes, strict=True)
        accepted = [offer for offer, outcome in pairs if isinstance(outcome, Accepted)]
        if any(offer.durable for offer in accepted):
            self._commit.sync(written)
        elif accepted:
            self._sync_soon.add(written)
        return outcomes

    def _accept(self, offer: Offer, now_ms: int, mined: int, free: int) -> Accepted | Refused:
        """Look everything up, and only then write. free: bytes left on the disk."""
        try:
            copies = self._copies_in_sound_log(offer.flights, mined) if offer.finds_copies else []
            use = self._keys.find(offer.key, self._key_time_ms(now_ms)) if offer.key else None
            if use is None:
                first, timestamp = self._write(offer, now_ms, mined, free)
            else:
                first, timestamp = use.first, use.timestamp
        except WriteFailed:
            raise
        except (FlightchainError, OSError) as refused:
            return refused
        return Accepted(first, timestamp, list(offer.flights), use is not None, copies)

    @contextmanager
    def exclusive(self) -> Iterator[int]:
        """Keep all other threads and processes from giving ids; needed to seal an import.

        Yields how many transactions blocks hold. While the lock is held, only blocks of pending
        transactions can be added by others. Raises TryLater if others hold the lock for longer than
        `files.LOCK_PATIENCE_S`, or if a backup has only been restored in part: the next restore
        would take away what was accepted.
        """
        with self.locked():
            if not (mined := self._chain_transactions()):
                self._require_no_restore()
            with self._lock:
                self._log.read_on(repair=True)
                self._log.forget(mined)
            yield mined

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from giving ids, as `exclusive` does, without reading the log.

        This is for the time before it is known what blocks hold.
        """
        if not self._has_folder:
            files.make_folder(self._folder)
            self._has_folder = True
        self._lock_others_out()
        try:
            yield
        finally:
            self._exclusive_thread = -1
            self._between_processes.release()
            self._accepting.release()

    @contextmanager
    def as_if(self, mined: int) -> Iterator["Mempool"]:
        """A view of the mempool as if blocks held `mined` transactions. Only inside `locked`."""
        other = Mempool(self._settings, lambda: mined, self._report)
        other._exclusive_thread = self._exclusive_thread
        try:
            yield other
        finally:
            other.close()

    def _lock_others_out(self) -> None:
        lock, patience_s = self._between_processes, files.LOCK_PATIENCE_S
        if not self._accepting.acquire(timeout=patience_s):
            raise TryLater(f"{lock.path} is held by another request of process {os.getpid()}")
        try:
            lock.acquire(wait=True, within_s=patience_s)
        except BaseException as error:
            self._accepting.release()
            if isinstance(error, WriterBusy):
                raise TryLater(
                    f"{error}; nothing is accepted until that process releases it"
                ) from error
            raise
        self._exclusive_thread = threading.get_ident()

    def _require_no_restore(self) -> None:
        if unfinished_restore.is_unfinished(self._chain_folder):
            raise TryLater(unfinished_restore.words(self._chain_folder), retry_after_s=60)

    def put_right(self) -> None:
        """Put right what is wrong with the log. Raises DamagedMempool if that cannot be done."""
        if self._exclusive_thread == threading.get_ident():
            with self._lock:
                self._log.put_right()
        else:
            with self.exclusive():
                self.put_right()

    def _in_sound_log(self, ask: Callable[[], Found]) -> Found:
        """Return what `ask` finds in the log, which is put right first if needed."""
        try:
            return ask()
        except NeedsRepair:
            self.put_right()
            return ask()

    def _key_time_ms(self, now_ms: int) -> int:
        """The time from which the age of keys is counted: `now_ms`, if it can be right at all.

        A machine without a battery for its clock may start in 1970; keys do not expire by that.
        """
        return now_ms if now_ms >= EARLIEST_MS else max(now_ms, self._log.last_timestamp)

    def _require_readable_keys(self) -> None:
        self._keys.require_readable(self._key_time_ms(clock_now_ms()))

    def _write(self, offer: Offer, now_ms: int, mined: int, free: int) -> tuple[int, int]:
        """Give ids and write the record. Returns the first id and the acceptance time."""
        with self._lock:
            first = max(self._log.next, mined)
            self._require_room(first - mined + len(offer.flights))
            timestamp = max(now_ms, self._log.last_timestamp)
            data = packed(first, timestamp, offer.flights, offer.key, mined)
            needed = self._settings.min_free_bytes + len(data)
            files.require_free(self._folder, needed, free)
            self._log.append(data, first, mined)
            if offer.finds_copies:  # then the flights before them have been added
                self._copies.add(first, offer.flights)
            return first, timestamp

    def _require_room(self, pending: int) -> None:
        most = self._settings.mempool_transactions
        if pending > most:
            told = counted(pending, "pending transaction")
            raise TryLater(
                f"the mempool is full: {told}, at most {most:,} are allowed",
                retry_after_s=max(1, round(self._settings.mine_interval_s)),
            )

    def _catch_up(self) -> None:
        """Take in most of what others have written, before the lock is taken and others wait."""
        with suppress(DamagedMempool):  # it is raised again under the lock
            with self._lock:
                self._log.read_more()
            self._copies_of((), self._chain_transactions())

    def _copies_in_sound_log(self, flights: Sequence[Flight], mined: int) -> list[int | None]:
        return self._in_sound_log(lambda: self._copies_of(flights, mined))

    def _copies_of(self, flights: Sequence[Flight], mined: int) -> list[int | None]:
        """For each flight the id of a pending transaction that equals it in all fields, or None."""
        with self._lock:
            self._log.forget(mined)
            self._copies.forget(mined)
            for record in self._log.records[self._log.place_after(self._copies.next) :]:
                start = max(record.first, self._copies.next)
                part = self._log.part(record, start, record.count, repair=True)
                self._copies.add(start, part.flights)
            return [self._copy_of(flight) for flight in flights]

    def _copy_of(self, flight: Flight) -> int | None:
        candidate = self._copies.candidate(flight)
        if candidate is None:
            return None
        found = self._log.flight_at(candidate, repair=True)
        return candidate if found is not None and found[0] == flight else None

    # --- reading -----------------------------------------------------------------------------

    def pending_count(self) -> int:
        """How many accepted transactions are in no block yet.

        This, `oldest_pending_at` and `find` raise TryLater while the log needs to be put right, and
        DamagedMempool if the chain has lost blocks.
        """
        with _for_readers():
            return self._pending_range()[1]

    def pending_ids(self) -> range:
        """The ids of the accepted transactions that are in no block yet. Raises as above."""
        with _for_readers():
            first, count = self._pending_range()
        return range(first, first + count)

    def oldest_pending_at(self) -> int | None:
        """When the oldest pending transaction was accepted, UTC milliseconds; None without any."""
        with _for_readers():
            _, count = self._pending_range()
        with self._lock:
            return self._log.records[0].timestamp if count and self._log.records else None

    def copies_of(self, flights: Sequence[Flight]) -> list[int | None]:
        """For each flight the id of a pending one that equals it in all fields, or None.

        Raises as `pending_count`.
        """
        with _for_readers():
            return self._copies_of(flights, self._chain_transactions())

    def whole_segments(self) -> tuple[int, Iterator[tuple[str, bytes]]]:
        """The id after the last one in the log, and each segment's file name and whole records.

        They are as at the time of this call, even if segments are removed meanwhile, as long as
        nothing else uses this object; a backup copies them. Raises NeedsRepair, or DamagedMempool
        if the chain has lost blocks.
        """
        with self._lock:
            self._log.read_on(repair=False)
            return self._log.next, self._log.whole_segments()

    def find(self, transaction_id: int) -> tuple[Flight, int] | None:
        """A pending transaction's flight and acceptance time; None if it is not in the log."""
        with _for_readers(), self._lock:
            self._log.read_on(repair=False)
            self._log.forget(self._chain_transactions())  # reads a torn block's flights again
            return self._log.flight_at(transaction_id, repair=False)

    def pending(self, limit: int, first: int = 0) -> list[Accepted]:
        """The oldest pending transactions, at most `limit`, in order of their ids, to be sealed.

        first: leave out those with ids below. A damaged log is put right first. Raises
        DamagedMempool if the chain has lost blocks.
        """
        return self._in_sound_log(lambda: self._pending(limit, first))

    def _pending(self, limit: int, first: int) -> list[Accepted]:
        mined, count = self._pending_range()
        start = max(first, mined)
        found: list[Accepted] = []
        with self._lock:
            for record in self._log.records:
                if count <= 0 or limit <= 0:
                    break
                if record.next > start:
                    part = self._log.part(record, start, limit, repair=True)
                    found.append(part)
                    start += len(part.flights)
                    limit -= len(part.flights)
        return found

    def _pending_range(self) -> tuple[int, int]:
        """First pending id and number of pending transactions."""
        with self._lock:
            self._log.read_on(repair=False)
            mined = self._chain_transactions()  # read after the log, so that it is not behind
            self._log.forget(mined)
            return mined, max(0, self._log.next - mined)

    def sync(self) -> None:
        """Make durable what has been read, whoever accepted it. Raises WriteFailed."""
        with self._lock:
            read = self._log.end
        self._commit.sync(read)

    def not_ready(self) -> list[str]:
        """The reasons why the service is not ready, as far as the mempool knows."""
        reasons = [lost_words(*lost) for lost in lost_in(self._folder)]
        for look in (self.pending_count, self._require_readable_keys):
            try:
                look()
            except (TryLater, Damage) as error:
                reasons.append(str(error))
        return reasons

    # --- trimming ----------------------------------------------------------------------------

    def trim(self, below: int) -> None:
        """Remove the segments whose ids are all below `below`; the newest always stays.

        The number of transactions in blocks is noted, so that lost blocks are noticed. Raises
        WriteFailed, or DamagedMempool if a segment's keys cannot be kept; that segment stays then.
        """
        with self.exclusive():
            self._log.note_mined()
            self._log.trim(below, self._key_time_ms(clock_now_ms()))

    def require_no_blocks(self) -> None:
        """Raise DamagedMempool if blocks have held transactions here at some time."""
        self._log.require_no_blocks()


@contextmanager
def _for_readers() -> Iterator[None]:
    """Turn NeedsRepair into TryLater, for callers that only read."""
    try:
        yield
    except NeedsRepair as error:
        raise TryLater(f"the mempool is being repaired: {error}") from error
