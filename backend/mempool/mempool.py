"""The pending transactions as processes share them: ids, and what is pending.

A transaction gets its id when it is accepted, and is on the disk before `accept` returns. One
`accept` is one record of the log, so a batch is in the ledger whole or not at all.

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

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from backend.chain.flight import Flight
from backend.errors import DamagedMempool, TryLater, WriteFailed
from backend.keys import IdempotencyKey, Keys
from backend.mempool.copies import Copies
from backend.mempool.log import End, Log
from backend.mempool.record import Accepted, packed
from backend.mempool.syncs import GroupCommit, SyncSoon
from backend.settings import Settings
from backend.storage import files

FOLDER = "mempool"
LOCK_NAME = "mempool.lock"


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
        """Give ids to valid flights; they are on the disk when this returns.

        now_ms: UTC milliseconds; an acceptance time never goes back. durable: if false, they are
        only written when this returns (a power cut may take them), and synced soon. key: if it was
        used in the last day, nothing is accepted and the earlier ids are returned. Raises TryLater
        when the mempool or the disk is full, KeyReused, WriteFailed, or DamagedMempool.
        """
        self._commit.require_sound()
        try:
            with self.exclusive():
                use = self._keys.find(key, now_ms) if key else None
                if use is not None:
                    accepted = Accepted(use.first, use.timestamp, list(flights), is_repeat=True)
                    written = self._log.end
                else:
                    accepted, written = self._write(flights, now_ms, key)
        except WriteFailed:
            self._commit.fail()
            raise
        if durable:
            self._commit.sync(written)
        else:
            self._sync_soon.add(written)
        return accepted

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While this is held nobody gives ids: for sealing others than pending transactions."""
        files.make_folder(self._folder)
        with self._accepting, self._between_processes:
            with self._lock:
                self._log.read_on(repair=True)
            yield

    def _write(
        self, flights: Sequence[Flight], now_ms: int, key: IdempotencyKey | None
    ) -> tuple[Accepted, End]:
        mined = self._chain_transactions()
        with self._lock:
            self._log.forget(mined)
            first = max(self._log.next, mined)
            self._require_room(first - mined + len(flights))
            timestamp = max(now_ms, self._log.last_timestamp)
            data = packed(first, timestamp, flights, key)
            files.require_free(self._folder, self._settings.min_free_bytes + len(data))
            self._log.append(data, first, mined)
            return Accepted(first, timestamp, list(flights)), self._log.end

    def _require_room(self, pending: int) -> None:
        most = self._settings.mempool_transactions
        if pending > most:
            raise TryLater(
                f"the mempool is full: {pending} pending transactions, at most {most} may be",
                retry_after_s=max(1, round(self._settings.mine_interval_s)),
            )

    def copies_of(self, flights: Sequence[Flight]) -> list[int | None]:
        """For each flight the id of a pending transaction that equals it in all fields, or None."""
        with self._lock:
            self._log.read_on(repair=False)
            mined = self._chain_transactions()
            self._log.forget(mined)
            for record in self._log.records[self._log.place_after(self._copies.next) :]:
                start = max(record.first, self._copies.next)
                part = self._log.part(record, start, record.count)
                self._copies.add(start, part.flights)
            self._copies.forget(mined)
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
