"""Accepts flights, gives them ids, and tells what is pending; processes share it.

A transaction gets its id when it is accepted, and is on the disk before `accept_all` returns. An
offer is written in one transaction of SQLite, so a batch is in the ledger whole or not at all.

An id is a position in the ledger, so transactions with ids below the chain's transaction count are
mined and all others are pending. Nothing needs to be marked, so a crash at any moment loses nothing
and mines nothing twice. Records are removed only when the block *after* theirs is sealed.

A damaged store is rebuilt by the next process that accepts or seals (`rebuild`). Until then
processes that only read get TryLater. A flight that was acknowledged is mined, or named as lost.

Any number of processes accept and read. Ids are given under a lock between processes. The sync
comes after the lock, and one sync serves every thread that wrote before it began (group commit).
Offers that come together (`accept_all`) share the lock and a transaction of SQLite, too. A request
that does not ask for durability is answered before the sync, which then follows within
`ASYNC_SYNC_S`.

An idempotency key is used once a day: a request that repeats it, in whatever process, gets the ids
that the first one got. It is as durable as its flights, because it is written with them.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import compress
from typing import NamedTuple, TypeVar

from backend.base import files
from backend.base.clock import now_ms as clock_now_ms
from backend.base.errors import (
    Damage,
    DamagedMempool,
    FlightchainError,
    NeedsRepair,
    TryLater,
    WriteFailed,
)
from backend.base.settings import Settings
from backend.base.words import Report, counted
from backend.chain.flight import Flight
from backend.chain.identity import Stored, all_matches, leg_of
from backend.mempool.duplicates import Duplicates
from backend.mempool.id_lock import IdLock
from backend.mempool.idempotency_keys import IdempotencyKey, KeyUse
from backend.mempool.lost_files import lost_in
from backend.mempool.rebuild import contents_of, finish_replacing, rebuild, what_next
from backend.mempool.records import Accepted, Record, records_of
from backend.mempool.store import Store
from backend.mempool.syncs import GroupCommit
from backend.mempool.watermark import Mark, Watermark
from backend.storage.genesis import Genesis
from backend.storage.layout import MARK_NAME, unfinished_restore

FOLDER = "mempool"
LOCK_NAME = "mempool.lock"
COMPARED_AT_ONCE, PAUSE_S = 500, 0.001
LOSS_UNKNOWN = (
    f"{MARK_NAME} is missing or damaged, too, so it is unknown which acknowledged or imported "
    "flights the lost blocks held, and their ids are given again: compare with copies elsewhere, "
    "then post or import the missing flights"
)

Result = TypeVar("Result")


class StaleComparison(TryLater):
    """What blocks hold of the flights of an offer was looked up before the newest blocks."""


class Unrepaired(TryLater):
    """The store needs a repair, which is not the task of whoever only reads."""


Refused = FlightchainError | OSError  # the outcome of an offer that is not accepted


class Offer(NamedTuple):
    """Flights to be accepted, all or none.

    key: if it was used in the last day, nothing is accepted and the earlier ids are given again.
    durable: if false, they are written but synced only soon after they are accepted, so a power cut
    may take them. in_blocks: for each flight what blocks hold of its leg; if this is given, only
    flights without a record in blocks, pending or before in the same offer are accepted. seen: how
    many transactions blocks held when that was looked up.
    """

    flights: Sequence[Flight]
    key: IdempotencyKey | None = None
    durable: bool = True
    in_blocks: Sequence[Sequence[Stored]] | None = None
    seen: int = 0


class Mempool:
    """The pending transactions of the ledger in `settings.folder`, shared by processes.

    chain_transactions: returns how many accepted transactions are in blocks.
    """

    def __init__(
        self, settings: Settings, chain_transactions: Callable[[], int], report: Report
    ) -> None:
        """chain_transactions: how many transactions blocks hold now, which is the first pending id.

        report: takes messages about what was rebuilt, one at a time.
        """
        self._settings = settings
        self.chain_transactions = chain_transactions
        self._report = report
        self._folder = settings.folder / FOLDER
        self._id_lock = IdLock(settings.folder / LOCK_NAME)
        self._lock = threading.Lock()  # held for moments: the store and the duplicates
        genesis = Genesis(settings.folder)
        self._watermark = Watermark(settings.folder, genesis, report)
        self._store = Store(self._folder, chain_transactions, genesis)
        self._duplicates = Duplicates()
        self._mined = 0  # how many transactions blocks held at the last look
        self._commit = GroupCommit(self._store, self._lock, self._watermark)

    def close(self) -> None:
        """Sync what was accepted without a sync, and close every descriptor."""
        self._commit.close()
        if self._store.has_written:  # leave one file behind, if nobody minds and nothing has failed
            with suppress(FlightchainError, OSError):
                self._commit.require_sound()
                with self._id_lock.held():
                    self._store.empty_log()
        with self._lock:
            self._store.close()
            self._watermark.close()

    # --- accepting ---------------------------------------------------------------------------

    def accept_all(self, offers: Sequence[Offer], now_ms: int) -> list[Accepted | Refused]:
        """Give ids to the flights of each offer, in their order, and make them durable together.

        now_ms: UTC milliseconds; an acceptance time never goes back. An error that concerns one
        offer is that offer's outcome: TryLater when the mempool or the disk is full, and KeyReused.
        An error that concerns all is raised: WriteFailed, DamagedMempool, OSError, or TryLater if
        others hold the lock for long.
        """
        self._commit.require_sound()
        try:
            outcomes, written = self._in_sound_store(lambda: self._write(offers, now_ms))
        except WriteFailed:
            self._commit.fail()
            raise
        pairs = zip(offers, outcomes, strict=True)
        accepted = [offer for offer, outcome in pairs if isinstance(outcome, Accepted)]
        if any(offer.durable for offer in accepted):
            self._commit.sync(written)
        elif accepted:
            self._commit.sync_soon(written)
        return outcomes

    def _write(self, offers: Sequence[Offer], now_ms: int) -> tuple[list[Accepted | Refused], int]:
        """Write the records of all offers in one transaction.

        Returns the outcomes, and the id after the last record.
        """
        with self.exclusive() as mined:
            free = files.free_bytes(self._folder)  # once for all: posts are small
            self._empty_due_log(free)
            with self._lock:
                try:
                    with self._store.writing():
                        outcomes = [self._accept(offer, now_ms, mined, free) for offer in offers]
                        return outcomes, self._store.next
                except BaseException:
                    self._duplicates.clear()
                    raise

    def _accept(self, offer: Offer, now_ms: int, mined: int, free: int) -> Accepted | Refused:
        """Look everything up, and only then write. free: bytes left on the disk."""
        try:
            others = self._records_of(offer.flights, mined)
            use = self._key_use(offer.key, now_ms)
            if use is not None:
                flights = list(offer.flights)
                return Accepted(use.first, use.timestamp, flights, True, others, use.count)
            if offer.in_blocks is not None:
                if mined != offer.seen:
                    raise StaleComparison("blocks were sealed while the flights were compared")
                pairs = zip(offer.in_blocks, others, strict=True)
                matches = all_matches(offer.flights, [[*mined, *here] for mined, here in pairs])
                others = [[] if record is None else [record] for record in matches]
                news = [record is None for record in matches]
                offer = offer._replace(flights=list(compress(offer.flights, news)))
                if not offer.flights:
                    return Accepted(self._store.next, now_ms, [], False, others)
            records = self._records(offer.flights, now_ms, mined, free)
        except (WriteFailed, DamagedMempool):
            raise
        except (FlightchainError, OSError) as refused:
            return refused
        self._store.append(records, offer.key)
        first, flights = records[0].first, list(offer.flights)
        self._duplicates.add(first, flights)  # behind those that `_records_of` has added
        return Accepted(first, records[0].timestamp, flights, False, others, len(flights))

    def _key_use(self, key: IdempotencyKey | None, now_ms: int) -> KeyUse | None:
        """Return what a key was used for in the last day; None if it was not. Raises KeyReused."""
        use = self._store.key_use(key.text) if key else None
        return use if key and use and use.counts_for(key, self._time_ms(now_ms)) else None

    def _records(
        self, flights: Sequence[Flight], now_ms: int, mined: int, free: int
    ) -> list[Record]:
        """Make the records of an offer. Raises TryLater if there is no room for them."""
        first = max(self._store.next, mined)
        self._require_room(first - mined + len(flights))
        records = records_of(first, self._time_ms(now_ms), flights, mined)
        size = sum(len(record.flights) for record in records)
        files.require_free(self._folder, self._settings.min_free_bytes, size, free)
        return records

    @contextmanager
    def exclusive(self) -> Iterator[int]:
        """Keep all other threads and processes from giving ids; needed to seal an import.

        Yields how many transactions blocks hold. While the lock is held, only blocks of pending
        transactions can be added by others. Raises TryLater if others hold the lock for longer than
        `files.LOCK_PATIENCE_S`, or if a backup has only been restored in part: the next restore
        would take away what was accepted.
        """
        with self.locked():
            mined = self.chain_transactions()
            if not mined and (problem := unfinished_restore(self._settings.folder)):
                raise TryLater(problem, retry_after_s=60)
            with self._lock:
                self._look_and_repair()
            yield mined

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from giving ids, as `exclusive` does, without reading the store.

        This is for the time before it is known what blocks hold. A thread that holds the lock may
        take it again.
        """
        files.make_folder(self._folder)
        with self._id_lock.held():
            yield

    # --- repairing -------------------------------------------------------------------------------

    def repair(self) -> None:
        """Read all of the store, and rebuild it if it is damaged.

        Raises DamagedMempool if that cannot be done.
        """
        with self.locked(), self._lock:
            self._store.read_anew()
            self._look_and_repair(reads_all=True)

    def _look_and_repair(self, *, reads_all: bool = False) -> None:
        """Take in what others have written; a damaged store is rebuilt. Only inside `locked`."""
        mark = self._watermark.read()
        try:
            finish_replacing(self._folder)
            self._store.require_whole_files()
            self._take_in(mark)
            if reads_all:
                self._store.everything()
        except NeedsRepair as error:
            self._rebuild(mark, str(error))
        else:
            if mark is None:
                self._rebuild_mark()

    def accept_loss(self) -> None:
        """Let void entries take the places of flights that were in blocks which are gone for good.

        Nothing happens if no flight is missing. It is reported if that cannot be known. Raises
        DamagedMempool if the file is another ledger's.
        """
        with self.locked(), self._lock:
            if self._watermark.read() is None:
                self._report(LOSS_UNKNOWN)
            try:
                self._look_and_repair(reads_all=True)
            except DamagedMempool as error:
                self._rebuild(self._watermark.read(), str(error), accepts_loss=True)

    def _rebuild(self, mark: Mark | None, problem: str, *, accepts_loss: bool = False) -> None:
        mined = self.chain_transactions()
        self._duplicates.clear()
        mark = rebuild(self._store, mined, mark, problem, self._report, accepts_loss=accepts_loss)
        self._watermark.note(mark)
        self._store.look(mark)

    def _rebuild_mark(self) -> None:
        """Note all of the store as acknowledged, because all of it may have been."""
        if self._store.next:
            self._store.log_sync()()
        self._watermark.note(Mark(self._store.next, self.chain_transactions()))

    def readable(self) -> list[Record]:
        """Return all records that can be read, whatever blocks hold. Only inside `locked`."""
        with self._lock:
            finish_replacing(self._folder)
            return contents_of(self._store)[0]

    def _in_sound_store(self, ask: Callable[[], Result]) -> Result:
        """Return what `ask` returns from the store, which is rebuilt first if needed."""
        try:
            return ask()
        except NeedsRepair:
            self.repair()
            return ask()

    def _empty_due_log(self, free: int) -> None:
        """Copy the write-ahead log into the file if that is due. Only inside `locked`.

        free: bytes left on the disk. On a full disk it would fail, and stop this process for good.
        """
        has_room = free >= self._settings.min_free_bytes
        if has_room and self._store.log_is_due():
            self._store.empty_log()

    def _time_ms(self, now_ms: int) -> int:
        """Return the time of acceptance, by which keys age, too: it never goes back.

        So keys are known even if the clock has leapt ahead, or is behind what was accepted.
        """
        return max(now_ms, self._store.last_timestamp)

    def _require_room(self, pending: int) -> None:
        most = self._settings.mempool_transactions
        if pending > most:
            many = counted(pending, "pending transaction")
            raise TryLater(
                f"the mempool is full: with this request it would have {many}, and at most "
                f"{most:,} are allowed; try again later",
                retry_after_s=max(1, round(self._settings.mine_interval_s)),
            )

    # --- duplicates ------------------------------------------------------------------------------

    def _records_of(self, flights: Sequence[Flight], mined: int) -> list[list[Stored]]:
        """Return for each flight the pending records of its leg, among them that of the flight."""
        duplicates = self._duplicates
        duplicates.forget(mined)
        for part in self._store.parts(max(mined, duplicates.next), self._store.next):
            duplicates.add(part.first_transaction, part.flights)
        return [self._of_leg(flight) for flight in flights]

    def _of_leg(self, flight: Flight) -> list[Stored]:
        records = []
        for transaction_id in self._duplicates.candidates(flight):
            stored = self._store.flight_at(transaction_id)
            if stored is not None and leg_of(stored[0]) == leg_of(flight):
                records.append(Stored(transaction_id, None, stored[0]))
        return records

    def records_of(self, flights: Sequence[Flight]) -> list[list[Stored]]:
        """Return for each flight the pending records of its leg, among them that of the flight.

        Flights may be many: between parts of them others get the lock. Raises as `pending_count`.
        """
        records: list[list[Stored]] = []
        for first in range(0, len(flights), COMPARED_AT_ONCE):
            if first:
                time.sleep(PAUSE_S)  # else whoever waits for the lock might not get it
            with self._reading() as mined:
                records += self._records_of(flights[first : first + COMPARED_AT_ONCE], mined)
        return records

    # --- reading -----------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[int]:
        """Take in what others have written, for a caller that only reads.

        Yields how many transactions blocks hold. Raises Unrepaired.
        """
        try:
            with self._lock:
                mined = self._look()
                yield mined
        except NeedsRepair as error:
            raise Unrepaired(f"{error}; {what_next(self._folder)}") from error

    def _look(self) -> int:
        """Take in what others have written. Returns how many transactions blocks hold."""
        return self._take_in(self._watermark.read())  # in this order: the store is not behind

    def _take_in(self, mark: Mark | None) -> int:
        """Take in what others have written. Returns how many transactions blocks hold."""
        self._store.look(mark)
        mined = self.chain_transactions()  # after the store, so that it is not behind
        if mined < self._mined:  # the newest block was torn, or blocks are gone
            self._store.read_anew()
            self._store.look(mark)
        self._mined = mined
        return mined

    def pending_count(self) -> int:
        """Return how many accepted transactions are in no block yet.

        This, `oldest_pending_at` and `find` raise TryLater while the store needs a repair, and
        DamagedMempool if the chain has lost blocks.
        """
        return len(self.pending_ids())

    def pending_ids(self) -> range:
        """Return the ids of the accepted transactions that are in no block yet. Raises as above."""
        with self._reading() as mined:
            return range(mined, max(mined, self._store.next))

    def acknowledged_end(self) -> int | None:
        """Return the id after the last acknowledged one; None if it is not known."""
        try:
            mark = self._watermark.read()
        except DamagedMempool:  # of another ledger
            return None
        return None if mark is None else mark.next

    def oldest_pending_at(self) -> int | None:
        """Return when the oldest pending transaction was accepted (UTC, ms); None without any."""
        with self._reading() as mined:
            oldest = self._store.flight_at(mined)
            return None if oldest is None else oldest[1]

    def find(self, transaction_id: int) -> tuple[Flight, int] | None:
        """Return a pending transaction's flight and acceptance time; None if the store lacks it."""
        with self._reading():
            return self._store.flight_at(transaction_id)

    def pending(self, limit: int, first: int = 0) -> list[Accepted]:
        """Return the oldest pending transactions, at most `limit`, in the order of their ids.

        first: leave out those with ids below. A damaged store is rebuilt first. Raises
        DamagedMempool if the chain has lost blocks.
        """
        return self._in_sound_store(lambda: self._pending(limit, first))

    def _pending(self, limit: int, first: int) -> list[Accepted]:
        with self._lock:
            start = max(first, self._look())
            return list(self._store.parts(start, limit))

    def snapshot(self) -> tuple[list[Record], dict[str, KeyUse]]:
        """Return all records in order, and all keys, for a backup.

        Raises NeedsRepair, and DamagedMempool if the chain has lost blocks.
        """
        with self._lock:
            self._look()
            return self._store.everything()

    def sync(self) -> None:
        """Make durable what has been read, whoever accepted it.

        The log is opened as by whoever writes to it: a sync through a descriptor that was opened
        after another process's sync had failed would say that what that lost is on the disk. Raises
        WriteFailed, DamagedMempool, or TryLater as `exclusive` does.
        """
        with self.exclusive(), self._lock, self._store.writing():
            following = self._store.next
        self._commit.sync(following)

    def not_ready(self) -> list[str]:
        """Return the reasons why the service is not ready, as far as the mempool knows."""
        reasons = [*map(str, lost_in(self._folder))]
        try:
            self.pending_count()
        except (TryLater, Damage) as error:
            reasons.append(str(error))
        return reasons

    # --- trimming ----------------------------------------------------------------------------

    def trim(self, below: int) -> None:
        """Remove records whose ids are all below `below`; the newest always stays.

        The number of transactions in blocks is noted, so that lost blocks are noticed. Raises
        WriteFailed, DamagedMempool.
        """
        is_more = True
        while is_more:
            with self.exclusive() as mined:
                mark = self._watermark.read() or Mark()
                if mined > mark.mined:
                    self._watermark.note(Mark(0, mined))
                self._empty_due_log(files.free_bytes(self._folder))
                is_more = self._in_sound_store(lambda: self._remove(below))

    def _remove(self, below: int) -> bool:
        with self._lock:
            return self._store.remove(below, self._time_ms(clock_now_ms()))
