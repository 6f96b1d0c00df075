"""The pending transactions as processes share them: ids, and what is pending.

A transaction gets its id when it is accepted, and is on the disk before `accept` returns. One offer
is one record of the log, so a batch is in the ledger whole or not at all.

An id is a position in the ledger, so whatever has an id below the chain's transaction count is
mined and everything else is pending: nothing is marked, and dying anywhere loses nothing and mines
nothing twice. Segments are removed only when the block *after* theirs is sealed.

Any number of processes accept and read. Ids are given under a lock between processes; the sync
comes after it, and one sync serves every thread that wrote before it began (group commit). Offers
that come together (`accept_all`) share the lock, too. Who does not ask for durability is answered
before the sync, which then follows within `ASYNC_SYNC_S`.

A key is used once a day: whoever comes with it again, in whatever process, gets what the first got.
It is as durable as the flights, being in the same record; before a segment is removed, its keys go
to `keys` (see there).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from backend.chain.flight import Flight
from backend.errors import DamagedMempool, FlightchainError, TryLater, WriteFailed
from backend.keys import IdempotencyKey, Keys
from backend.mempool.copies import Copies
from backend.mempool.log import Log
from backend.mempool.record import Accepted, packed
from backend.mempool.syncs import GroupCommit, SyncSoon
from backend.settings import Settings
from backend.storage import files

FOLDER = "mempool"
LOCK_NAME = "mempool.lock"

Refused = FlightchainError | OSError  # what becomes of an offer that is not accepted


class Offer(NamedTuple):
    """Flights to be accepted, all or none.

    key: if it was used in the last day, nothing is accepted and the earlier ids are given again.
    durable: if false, they are only written when they are accepted (a power cut may take them), and
    synced soon. finds_copies: whether pending flights that equal them are looked for.
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
        """chain_transactions: how many transactions blocks hold now, so the first pending id.

        report: takes what was put right in the log, line by line.
        """
        self._settings = settings
        self._chain_transactions = chain_transactions
        self._folder = settings.folder / FOLDER
        self._between_processes = files.FileLock(settings.folder / LOCK_NAME)
        self._accepting = threading.Lock()  # held while waiting for other processes
        self._lock = threading.Lock()  # held for moments: the log and the copies
        self._keys = Keys(self._folder)
        self._log = Log(self._folder, chain_transactions, self._keys, report)
        self._copies = Copies()
        self._commit = GroupCommit(self._log, self._lock)
        self._sync_soon = SyncSoon(self._commit.sync)

    def close(self) -> None:
        """Sync what was accepted without it, and close every descriptor."""
        self._sync_soon.close()
        with self._lock:
            self._log.close()

    # --- accepting ---------------------------------------------------------------------------

    def accept(
        self,
        flights: Sequence[Flight],
        now_ms: int,
        *,
        durable: bool = True,
        key: IdempotencyKey | None = None,
    ) -> Accepted:
        """What `accept_all` makes of one offer; an outcome that is an error is raised."""
        (outcome,) = self.accept_all([Offer(flights, key, durable)], now_ms)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def accept_all(self, offers: Sequence[Offer], now_ms: int) -> list[Accepted | Refused]:
        """Give ids to the flights of each offer, in their order, and make them durable together.

        now_ms: UTC milliseconds; an acceptance time never goes back. What stands in the way of one
        offer is its outcome: TryLater when the mempool or the disk is full, KeyReused, and
        DamagedMempool or OSError if what must be looked up cannot be read. Raises what stands in
        the way of all: WriteFailed, or DamagedMempool.
        """
        self._commit.require_sound()
        if any(offer.finds_copies for offer in offers):
            self._catch_up()
        try:
            with self.exclusive():
                mined = self._chain_transactions()  # more will be only of what is pending
                outcomes = [self._accept(offer, now_ms, mined) for offer in offers]
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

    def _accept(self, offer: Offer, now_ms: int, mined: int) -> Accepted | Refused:
        """Everything is looked up before anything is written."""
        try:
            copies = self._copies_of(offer.flights, mined) if offer.finds_copies else []
            use = self._keys.find(offer.key, now_ms) if offer.key else None
            if use is None:
                first, timestamp = self._write(offer, now_ms, mined)
            else:
                first, timestamp = use.first, use.timestamp
        except WriteFailed:
            raise
        except (FlightchainError, OSError) as refused:
            return refused
        return Accepted(first, timestamp, list(offer.flights), use is not None, copies)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While this is held nobody gives ids: for sealing others than pending transactions."""
        files.make_folder(self._folder)
        with self._accepting, self._between_processes:
            with self._lock:
                self._log.read_on(repair=True)
            yield

    def _write(self, offer: Offer, now_ms: int, mined: int) -> tuple[int, int]:
        """Give ids and write; the first id, and the acceptance time."""
        with self._lock:
            self._log.forget(mined)
            first = max(self._log.next, mined)
            self._require_room(first - mined + len(offer.flights))
            timestamp = max(now_ms, self._log.last_timestamp)
            data = packed(first, timestamp, offer.flights, offer.key)
            files.require_free(self._folder, self._settings.min_free_bytes + len(data))
            self._log.append(data, first, mined)
            if offer.finds_copies:  # then all before them have been taken in
                self._copies.add(first, offer.flights)
            return first, timestamp

    def _require_room(self, pending: int) -> None:
        most = self._settings.mempool_transactions
        if pending > most:
            raise TryLater(
                f"the mempool is full: {pending} pending transactions, at most {most} may be",
                retry_after_s=max(1, round(self._settings.mine_interval_s)),
            )

    def _catch_up(self) -> None:
        """Take in most of what others have written, before others have to wait for it."""
        with self._lock:
            self._log.read_more()
        self._copies_of((), self._chain_transactions())

    def _copies_of(self, flights: Sequence[Flight], mined: int) -> list[int | None]:
        """For each flight the id of a pending transaction that equals it in all fields, or None."""
        with self._lock:
            self._log.forget(mined)
            self._copies.forget(mined)
            for record in self._log.records[self._log.place_after(self._copies.next) :]:
                start = max(record.first, self._copies.next)
                self._copies.add(start, self._log.part(record, start, record.count).flights)
            return [self._copy_of(flight) for flight in flights]

    def _copy_of(self, flight: Flight) -> int | None:
        candidate = self._copies.candidate(flight)
        if candidate is None:
            return None
        found = self._log.flight_at(candidate)
        return candidate if found is not None and found[0] == flight else None

    # --- reading -----------------------------------------------------------------------------

    def pending_count(self) -> int:
        """How many accepted transactions are in no block yet."""
        return self._pending_range()[1]

    def oldest_pending_at(self) -> int | None:
        """When the oldest pending transaction was accepted, UTC milliseconds; None without any."""
        _, count = self._pending_range()
        with self._lock:
            return self._log.records[0].timestamp if count and self._log.records else None

    def pending(self, limit: int) -> list[Accepted]:
        """The oldest pending transactions, at most `limit`, in order of their ids.

        Raises DamagedMempool if the chain has fewer transactions than it must: then some were lost.
        """
        start, count = self._pending_range()
        found: list[Accepted] = []
        with self._lock:
            for record in self._log.records:
                if count <= 0 or limit <= 0:
                    break
                if record.next > start:
                    part = self._log.part(record, start, limit)
                    found.append(part)
                    start += len(part.flights)
                    limit -= len(part.flights)
        return found

    def whole_segments(self) -> tuple[int, Iterator[tuple[str, bytes]]]:
        """The id after the last one in the log; of each segment the file name, and whole records.

        For a copy, by who has this mempool for himself: all are as they were when this was called.
        """
        with self._lock:
            self._log.read_on(repair=False)
            return self._log.next, self._log.whole_segments()

    def find(self, transaction_id: int) -> tuple[Flight, int] | None:
        """A pending transaction: its flight and acceptance time; None if it is not in the log."""
        with self._lock:
            self._log.read_on(repair=False)
            return self._log.flight_at(transaction_id)

    def _pending_range(self) -> tuple[int, int]:
        """First pending id and number of pending transactions."""
        with self._lock:
            self._log.read_on(repair=False)
            mined = self._chain_transactions()  # after the log: it must not be behind
            self._log.forget(mined)
            if not self._log.records:
                return mined, 0
            oldest = self._log.records[0].first
            if oldest > mined:
                raise DamagedMempool(
                    f"the chain ends at transaction {mined - 1}, but the oldest pending one is "
                    f"{oldest}: the chain has lost blocks; restore it from a copy"
                )
            return mined, self._log.next - mined

    # --- trimming ----------------------------------------------------------------------------

    def trim(self, below: int) -> None:
        """Remove the segments of which every id is below `below`; the newest always stays.

        Raises WriteFailed.
        """
        with self.exclusive():
            self._log.trim(below)
