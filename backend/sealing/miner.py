"""Seals pending transactions into blocks, unless a cluster does. An import writes blocks, too.

Exactly one miner runs for a chain, however many processes try: it holds `miner.lock` as long as it
runs. For each round it also takes the writer lock, which an import holds while it runs. In a round
a block is appended and synced, then becomes visible, then goes into the index, and then the mempool
is trimmed. A crash between any two steps loses nothing: a transaction is pending until its id is
below the number of transactions in the chain.

A round begins every interval, and at once when enough is pending for a full block; none begins
while `trusted_clock` doubts the clock. During the rounds a thread checks what is on the disk
(`scrub`). `miner_status` tells `/tip`, `/health/ready` and the supervisor what the miner is doing.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import DamagedMempool, TryLater, WriterBusy
from backend.base.processes.shared_numbers import MinerNumbers
from backend.base.processes.systemd import Notifier
from backend.base.settings import Settings
from backend.base.words import Report, counted
from backend.chain.block import MAX_TRANSACTIONS, Block
from backend.chain.columns import Columns, columns_of
from backend.chain.flight import Flight
from backend.chain.state import Content, ForeseenRoot, content_of
from backend.index.damage_mark import IndexRebuilder
from backend.index.follower import IndexFollower, Progress, no_progress
from backend.index.writer import SealedBlock
from backend.mempool import Mempool, PendingInRecovery
from backend.sealing.miner_status import INDEXING_S, LOCK_NAME, Announcer
from backend.sealing.trusted_clock import Doubt, TrustedClock
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.storage.codec import compress
from backend.storage.receipt_store import require_no_cluster
from backend.trust.log.signing import CheckpointSigner
from backend.verify.folder_check import require_ledger, require_may_begin, require_one_ledger
from backend.verify.scrub import scrubbing

POLL_S = 0.2
RETRY_S = 1.0  # the pause after an error that a person may have to put right

WaitsOn = Callable[[Doubt], bool]
Sealed = Callable[[int, float], None]  # a block's transactions, and the seconds it took


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The content of a block that is not sealed yet, its body as it will be stored, and its root.

    foreseen: if it was made already, for the id that the first transaction should get.
    """

    content: Content
    compressed_body: bytes
    foreseen: ForeseenRoot | None = None


def nobody_counts(transactions: int, seconds: float) -> None:
    """Do nothing with the numbers of a sealed block."""


def pauses(doubt: Doubt) -> bool:  # noqa: ARG001
    """Sleep for a moment while the clock is doubted, then go on waiting."""
    time.sleep(POLL_S)
    return True


def unsealed(columns: Columns) -> Unsealed:
    """Make the content of a block from `columns`."""
    content = content_of(columns)
    return Unsealed(content, compress(content.body))


class Sealer:
    """Puts transactions into blocks and blocks into the index, signs, and trims the mempool.

    index: keeps the index at the tip; `writing` rebuilds it if a process has marked it as wrong.
    """

    def __init__(
        self,
        settings: Settings,
        report: Report,
        sealed: Sealed = nobody_counts,
        *,
        is_miner: bool = False,
        accepts_loss: bool = False,
    ) -> None:
        """sealed: is called for every block of pending transactions.

        is_miner: whether this is the miner, which decides for other processes when a clock that
        leapt is believed. accepts_loss: whether a person has decided to go on with blocks that are
        older than the rest of the folder.
        """
        self._settings = settings
        self._report = report
        self._sealed = sealed
        self._store = BlockStore(settings.folder)
        self.clock = TrustedClock(settings, self._store, report, is_miner=is_miner, seals=True)
        self.transactions = self._store.transactions
        self.mempool = Mempool(settings, self.transactions, report)
        pending = PendingInRecovery(self.mempool)
        self._accepts_loss = accepts_loss
        may_begin = partial(require_may_begin, settings.folder)
        self._writer = BlockWriter(
            settings, now_ms, report, pending, may_begin, self._require_one_ledger
        )
        self.index = IndexFollower(settings.folder, self._store, report)
        self._for_later: list[SealedBlock] | None = None  # blocks that the index is to have
        self._signer = CheckpointSigner(settings.folder, self._store, report)

    def _require_one_ledger(self) -> None:
        require_one_ledger(self._settings.folder, self._store, accepts_loss=self._accepts_loss)
        if self._accepts_loss:
            self.mempool.accept_loss()

    def height(self) -> int:
        """Return the height of the tip. Only inside `writing`."""
        return self._writer.state.height

    def wait_for_clock(self, waits_on: WaitsOn = pauses) -> bool:
        """Wait until the clock is believed, and report that. Returns whether it had to wait.

        waits_on: is called again and again while the clock is doubted; it takes a moment, and
        returns whether to go on waiting.
        """
        if (doubt := self.clock.doubt()) is None:
            return False
        self._report(str(doubt))
        while waits_on(doubt):
            if (doubt := self.clock.doubt()) is None:
                self._report("the clock is trusted again; mining continues")
                break
        return True

    @contextmanager
    def writing(
        self,
        *,
        wait: bool,
        progress: Progress = no_progress,
        follow: bool = True,
        sign: bool = True,
    ) -> Iterator[None]:
        """Hold the writer lock, with the files recovered and the index brought to the tip.

        wait: whether to wait for another writer. progress: is told how far the index is. follow: if
        false, the index is left as it is. sign: if false, the log is left as it is. Raises
        WriterBusy, Damage (also if the blocks are another ledger's, or older than the rest of the
        folder), WriteFailed, and FlightchainError if a cluster writes this chain.
        """
        require_no_cluster(self._settings.folder)
        require_ledger(self._settings.folder)
        self._writer.acquire(wait=wait)
        try:
            if follow:
                self.index.follow(progress)
            yield
            if sign:
                self._signer.sign(self._writer.state)
        finally:
            try:
                self.index.close()
            finally:
                self._writer.release()

    def seal_pending(self, *, empty: bool = False, only_full: bool = False) -> list[Block]:
        """Seal pending transactions, oldest first, a block at a time. Only inside `writing`.

        empty: seal an empty block if nothing is pending. only_full: leave transactions that do not
        fill a block. Raises TryLater as `seal` does.
        """
        sealed: list[Block] = []
        while accepted := self.mempool.pending(MAX_TRANSACTIONS):
            state = self._writer.state
            if accepted[0].first_transaction != state.transactions:
                first = accepted[0].first_transaction
                raise DamagedMempool(f"transaction {first} is pending, not {state.transactions}")
            flights = [flight for part in accepted for flight in part.flights]
            if only_full and len(flights) < MAX_TRANSACTIONS:
                break
            times = [repeat(part.timestamp, len(part.flights)) for part in accepted]
            sealed += self._seal_one(flights, list(chain(*times)))
        if empty and not sealed:
            sealed += self._seal_one([], [])
        return sealed

    def _seal_one(self, flights: Sequence[Flight], times: Sequence[int]) -> list[Block]:
        """Seal a block, and tell `sealed` how long it took until it was in the index."""
        started = time.perf_counter()
        blocks = self.seal([unsealed(columns_of(flights, times))])
        self._sealed(len(flights), time.perf_counter() - started)
        return blocks

    def seal(self, many: Sequence[Unsealed]) -> list[Block]:
        """Seal one block for each of `many`, with one sync for all. Only inside `writing`.

        Raises TryLater while the clock is doubted, and if the disk is nearly full.
        """
        files.require_free(self._settings.folder, self._settings.min_free_bytes)
        blocks: list[Block] = []
        for sealed in many:
            block = self._writer.state.build(self.clock.now_ms(), sealed.content, sealed.foreseen)
            self._writer.append(block, sealed.compressed_body)
            blocks.append(block)
        self._writer.commit()
        pairs = zip(blocks, many, strict=True)
        new = [SealedBlock(b.header, b.hash, sealed.content.columns) for b, sealed in pairs]
        if self._for_later is None:
            self.index.apply(new)
        else:
            self._for_later += new
        return blocks

    @contextmanager
    def indexing_later(self) -> Iterator[None]:
        """Take what is sealed inside into the index at the end, when a lock has been released."""
        new: list[SealedBlock] = []
        self._for_later = new
        try:
            yield
        finally:
            self._for_later = None
            if new:
                self.index.apply(new)

    def trim(self) -> None:
        """Remove from the mempool what is in blocks below the tip.

        What is in the tip stays: a disk that lies about its syncs may lose the tip, and then its
        transactions are mined again.
        """
        tip = self._store.tip()
        if tip is not None:
            self.mempool.trim(tip[1].first_transaction)

    def close(self) -> None:
        self.index.close()
        self._writer.close()
        self.mempool.close()
        self._store.close()


class Miner:
    """The one miner of a chain, which does rounds until it is told to stop."""

    def __init__(
        self, settings: Settings, report: Report, notifier: Notifier | None = None
    ) -> None:
        """notifier: is told when the rounds begin, that the miner lives, and when they end."""
        self._settings = settings
        self._report = report
        self._notifier = notifier or Notifier({}, report)
        self._lock = files.FileLock(settings.folder / LOCK_NAME)
        self._status = Announcer(settings.folder, report)
        self._numbers = MinerNumbers()
        self._sealer = Sealer(settings, report, self._sealed, is_miner=True)
        self._is_stopping = False
        self._mender = IndexRebuilder(self._sealer.index.is_marked, self._rebuild_index)
        self._said = ""  # the last report of what keeps it from sealing; "" after a good round
        self._pause = threading.Event()  # never set

    def stop(self) -> None:
        """Make `run` finish the block in hand and return; a pause ends within `POLL_S`.

        Signal handlers may call this. They may run while their own thread holds a lock, for
        instance that of an Event, so no lock is taken here.
        """
        self._is_stopping = True

    def _wait(self, seconds: float) -> None:
        """Pause for `seconds`, or until `stop`."""
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._pause.wait(min(POLL_S, left))

    def _wait_at_work(self, seconds: float, doubted_until_s: float | None = None) -> None:
        """Pause as `_wait` does, and go on announcing that the miner is alive."""
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._status.working(doubted_until_s=doubted_until_s)
            self._notifier.alive()
            self._wait(min(POLL_S, left))

    def run(self) -> None:
        """Mine until `stop`. Raises WriterBusy if a miner runs already; else as `Sealer`."""
        files.make_folder(self._settings.folder)
        try:
            self._lock.acquire(wait=False)
        except WriterBusy as error:
            raise WriterBusy(
                f"{error}: a service or another miner seals the flights of this ledger; stop it "
                "first if this one is to do that"
            ) from error
        try:
            self._status.silent()  # removes the status of an earlier miner
            self._numbers.start(self._settings)
            self._recover()
            self._notifier.ready()
            with scrubbing(self._settings, self._report):
                self._rounds()
        finally:
            self._notifier.stopping()
            self._status.silent()
            self._sealer.close()
            self._lock.release()

    def _recover(self) -> None:
        """Put the files right and bring the index to the tip before anything else."""
        while not self._is_stopping:
            with self._patiently(), self._sealer.writing(wait=False, progress=self._indexing):
                return

    def _rounds(self) -> None:
        interval_s = self._settings.mine_interval_s
        due = time.monotonic() + interval_s
        self._status.next_round(interval_s)
        while not self._is_stopping:
            if self._sealer.wait_for_clock(self._waits_on):
                self._pausing_until(due)
            is_due = time.monotonic() >= due
            if is_due or self._is_block_full():
                self._round(only_full=not is_due)
                if is_due:  # keep the pace; rounds that were missed are not made up for
                    missed = math.floor((time.monotonic() - due) / interval_s)
                    due += interval_s * (missed + 1)
                self._pausing_until(due)
            if self._mend_index():
                self._pausing_until(due)
            self._notifier.alive()
            self._numbers.sample(self._sealer.index.rebuild_count)
            self._wait(min(POLL_S, due - time.monotonic()))

    def _pausing_until(self, due: float) -> None:
        """Announce that there is nothing to do until the round that is due at `due`."""
        self._status.next_round(max(0.0, due - time.monotonic()))

    def _waits_on(self, doubt: Doubt) -> bool:
        """Announce for a moment that the clock is waited for. Returns whether to go on waiting."""
        self._wait_at_work(POLL_S, time.monotonic() + doubt.left_s)
        return not self._is_stopping

    def _round(self, *, only_full: bool) -> None:
        empty = bool(self._settings.mine_empty) and not only_full
        with self._patiently():
            # A round with nothing to do is short, and the announcement not worth a write.
            if empty or self._pending():
                self._status.working()
            with self._sealer.writing(wait=False, progress=self._indexing):
                for block in self._sealer.seal_pending(empty=empty, only_full=only_full):
                    count = counted(block.header.transaction_count, "transaction")
                    self._report(f"sealed block {block.header.height} with {count}")
                self._sealer.trim()
                self._said = ""

    def _is_block_full(self) -> bool:
        """Return whether enough is pending for a block; false while that cannot be told."""
        pending = 0
        with self._patiently():
            pending = self._pending()
        return pending >= MAX_TRANSACTIONS

    def _pending(self) -> int:
        """Return how many transactions are pending; a damaged mempool is repaired first."""
        mempool = self._sealer.mempool
        try:
            return mempool.pending_count()
        except TryLater:
            self._status.working()
            mempool.put_right()
            return mempool.pending_count()

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Report once what keeps the miner from sealing, wait a little, and go on; it may pass."""
        try:
            yield
        except WriterBusy:
            self._wait_at_work(POLL_S)  # an import is running; it seals what is pending, too
        except (TryLater, DamagedMempool, OSError) as error:
            if self._said != str(error):
                self._said = str(error)
                self._report(f"cannot seal now: {error}")
            self._wait_at_work(RETRY_S)  # not longer, because the clock may soon be right again

    def _sealed(self, transactions: int, seconds: float) -> None:
        """Count a block, and announce that the miner is alive however many are to be sealed."""
        self._numbers.sealed(transactions, seconds)
        self._status.working()

    def _mend_index(self) -> bool:
        """Rebuild the index if it is marked as wrong. Returns whether that was done, or tried."""
        with self._patiently():
            if not self._mender.look():
                return False
        return True

    def _rebuild_index(self) -> None:
        with self._sealer.writing(wait=False, progress=self._indexing):
            pass

    def _indexing(self, done: int, to_do: int) -> None:  # noqa: ARG002
        """Announce that the miner is alive while it works on an index, which may take long."""
        self._status.working(INDEXING_S)
        self._notifier.alive()
