"""The miner: seals pending transactions into blocks. The only other writer is an import.

Exactly one miner runs for a chain, however many processes try: it holds `miner.lock` for life. For
each round it also takes the writer lock, which an import holds while it runs. The order in a round:
block appended and synced, then visible, then in the index, then the mempool is trimmed. Dying
between any two loses nothing: a transaction is pending until its id is below the chain's count.

A round comes every interval, and at once when a block is full; none comes while `trusted_clock`
doubts the clock. Beside the rounds a thread looks at what is on the disk (`scrub`). `miner_status`
says what the miner is doing, for `/tip`, `/health/ready` and whoever looks after it.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, repeat

from backend.chain.block import MAX_TRANSACTIONS, Block
from backend.chain.columns import Columns, columns_of
from backend.chain.content import Content, content_of
from backend.chain.flight import Flight
from backend.checking.scrub import scrubbing
from backend.clock import now_ms
from backend.errors import DamagedMempool, TryLater, WriterBusy
from backend.index.follower import IndexFollower, Progress, no_progress
from backend.index.writer import SealedBlock
from backend.mempool import Mempool, PendingInRecovery
from backend.processes.shared_numbers import MinerNumbers
from backend.processes.systemd import Notifier
from backend.sealing.miner_status import INDEXING_S, LOCK_NAME, Announcer
from backend.sealing.trusted_clock import Doubt, TrustedClock
from backend.settings import Settings
from backend.storage import files
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.storage.codec import compress
from backend.words import counted

POLL_S = 0.2
RETRY_S = 1.0  # after something that a person may have to put right

Report = Callable[[str], None]
WaitsOn = Callable[[Doubt], bool]
Sealed = Callable[[int, float], None]  # transactions of a block, how long it took in seconds


@dataclass(frozen=True, slots=True)
class Unsealed:
    """A block to be: its content, and its body as it will be stored."""

    content: Content
    compressed_body: bytes


def nobody_counts(transactions: int, seconds: float) -> None:
    """Blocks that nobody counts."""


def pauses(doubt: Doubt) -> bool:  # noqa: ARG001
    """Wait for the clock with nothing to do meanwhile."""
    time.sleep(POLL_S)
    return True


def unsealed(columns: Columns) -> Unsealed:
    """The block that `columns` will make."""
    content = content_of(columns)
    return Unsealed(content, compress(content.body))


class Sealer:
    """Puts transactions into blocks, blocks into the index, and trims the mempool."""

    def __init__(
        self,
        settings: Settings,
        report: Report,
        sealed: Sealed = nobody_counts,
        *,
        is_miner: bool = False,
    ) -> None:
        """sealed: told of every block that is made of pending transactions.

        is_miner: decides for other processes when a clock that leapt is believed.
        """
        self._settings = settings
        self._report = report
        self._sealed = sealed
        self._store = BlockStore(settings.folder)
        self.clock = TrustedClock(settings, self._store, report, is_miner=is_miner, seals=True)
        self.mempool = Mempool(settings, self.transactions, report)
        pending = PendingInRecovery(settings.folder, self.mempool)
        self._writer = BlockWriter(
            settings, now_ms, report, pending, self.mempool.require_no_blocks
        )
        self._follower = IndexFollower(settings.folder, self._store, report)

    def transactions(self) -> int:
        """How many transactions the blocks hold."""
        tip = self._store.tip()
        return 0 if tip is None else tip[1].next_transaction

    def wait_for_clock(self, waits_on: WaitsOn = pauses) -> bool:
        """Return when the clock is believed, and say so if that takes a while; whether it did.

        waits_on: called while it is doubted; takes a moment, and says whether to wait on.
        """
        if (doubt := self.clock.doubt()) is None:
            return False
        self._report(str(doubt))
        while waits_on(doubt):
            if (doubt := self.clock.doubt()) is None:
                self._report("the clock is believed; going on")
                break
        return True

    @contextmanager
    def writing(
        self, *, wait: bool, progress: Progress = no_progress, follow: bool = True
    ) -> Iterator[None]:
        """Be the writer: files recovered and, unless `follow` is false, the index at the tip.

        wait: wait for another writer. progress: of bringing the index up. Raises WriterBusy,
        DamagedBlock, WriteFailed.
        """
        self._writer.acquire(wait=wait)
        try:
            if follow:
                self._follower.follow(progress)
            yield
        finally:
            try:
                self._follower.close()
            finally:
                self._writer.release()

    def seal_pending(self, *, empty: bool = False, only_full: bool = False) -> list[Block]:
        """Seal what is pending, oldest first, a block at a time.

        empty: seal an empty block if nothing is pending. only_full: leave what does not fill a
        block. Only inside `writing`. Raises TryLater as `seal`.
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
        """Seal a block, and say how long it took from flights until it is in the index."""
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
        for one in many:
            block = self._writer.state.build(self.clock.now_ms(), one.content)
            self._writer.append(block, one.compressed_body)
            blocks.append(block)
        self._writer.commit()
        pairs = zip(blocks, many, strict=True)
        self._follower.apply([SealedBlock(b.header, b.hash, one.content) for b, one in pairs])
        return blocks

    def trim(self) -> None:
        """Let the mempool forget what is in blocks below the tip.

        Not what is in the tip: a disk that lies about its syncs may lose that one, and then it is
        mined again.
        """
        tip = self._store.tip()
        if tip is not None:
            self.mempool.trim(tip[1].first_transaction)

    def reindex(self, progress: Progress) -> None:
        """Make the index anew. Only inside `writing`."""
        self._follower.rebuild(progress)

    def index_is_marked(self) -> bool:
        """Whether somebody has found the index to be wrong; `writing` makes it anew then."""
        return self._follower.is_marked()

    def index_made_anew(self) -> int:
        """How often this object has made an index anew that was wrong."""
        return self._follower.made_anew

    def close(self) -> None:
        """Give everything back."""
        self._follower.close()
        self._writer.close()
        self.mempool.close()
        self._store.close()


class Miner:
    """The one miner of a chain: rounds until it is told to stop."""

    def __init__(
        self, settings: Settings, report: Report, notifier: Notifier | None = None
    ) -> None:
        """notifier: is told when the rounds begin, after each, and when they end."""
        self._settings = settings
        self._report = report
        self._notifier = notifier or Notifier({}, report)
        self._lock = files.FileLock(settings.folder / LOCK_NAME)
        self._status = Announcer(settings.folder, report)
        self._numbers = MinerNumbers()
        self._sealer = Sealer(settings, report, self._sealed, is_miner=True)
        self._is_stopping = False
        self._mend_not_before = 0.0
        self._said = ""  # what kept it from sealing, until that has passed
        self._pause = threading.Event()  # never set

    def stop(self) -> None:
        """Finish the block in hand and return from `run`, within `POLL_S` of pausing.

        For signal handlers, too: these may come while this very thread is inside a lock, that of an
        Event for instance, so no lock is taken.
        """
        self._is_stopping = True

    def _wait(self, seconds: float) -> None:
        """Pause for so long, or until `stop`."""
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._pause.wait(min(POLL_S, left))

    def _wait_at_work(self, seconds: float, doubted_until_s: float | None = None) -> None:
        """Pause as `_wait` does, and let nobody think that the miner hangs."""
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._status.working(doubted_until_s=doubted_until_s)
            self._notifier.alive()
            self._wait(min(POLL_S, left))

    def run(self) -> None:
        """Mine until `stop`. Raises WriterBusy if there is a miner already; else as `Sealer`."""
        files.make_folder(self._settings.folder)
        self._lock.acquire(wait=False)
        try:
            self._status.silent()  # what a miner before this one said
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
        """Put the files right and bring the index up before anything else."""
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
            self._numbers.sample(self._sealer.index_made_anew())
            self._wait(min(POLL_S, due - time.monotonic()))

    def _pausing_until(self, due: float) -> None:
        """Say that there is nothing to do until the round that is due then, or is overdue."""
        self._status.next_round(max(0.0, due - time.monotonic()))

    def _waits_on(self, doubt: Doubt) -> bool:
        """Say what is waited for, for a moment; whether to wait on."""
        self._wait_at_work(POLL_S, time.monotonic() + doubt.left_s)
        return not self._is_stopping

    def _round(self, *, only_full: bool) -> None:
        empty = bool(self._settings.mine_empty) and not only_full
        with self._patiently():
            # A round with nothing to do is short, and not worth a write to the disk.
            if empty or self._pending():
                self._status.working()
            with self._sealer.writing(wait=False, progress=self._indexing):
                for block in self._sealer.seal_pending(empty=empty, only_full=only_full):
                    count = counted(block.header.transaction_count, "transaction")
                    self._report(f"sealed block {block.header.height} with {count}")
                self._sealer.trim()
                self._said = ""

    def _is_block_full(self) -> bool:
        """Whether enough is pending for a block; false while that cannot be told."""
        pending = 0
        with self._patiently():
            pending = self._pending()
        return pending >= MAX_TRANSACTIONS

    def _pending(self) -> int:
        """How many transactions are pending; a mempool that needs it is put right first."""
        mempool = self._sealer.mempool
        try:
            return mempool.pending_count()
        except TryLater:
            self._status.working()
            mempool.put_right()
            return mempool.pending_count()

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Say once what keeps this from sealing, wait a little, and go on: it may pass."""
        try:
            yield
        except WriterBusy:
            self._wait_at_work(POLL_S)  # an import is running; it seals what is pending, too
        except (TryLater, DamagedMempool, OSError) as error:
            if self._said != str(error):
                self._said = str(error)
                self._report(f"cannot seal now: {error}")
            self._wait_at_work(RETRY_S)  # and not longer: the clock may be back before it must be

    def _sealed(self, transactions: int, seconds: float) -> None:
        """Count a block; the miner gets on, however many are to be sealed."""
        self._numbers.sealed(transactions, seconds)
        self._status.working()

    def _mend_index(self) -> bool:
        """Make an index anew that somebody found to be wrong; whether that was done, or tried.

        What keeps damaging it must not keep the miner from mining: it gets a tenth of the time.
        """
        started = time.monotonic()
        if started < self._mend_not_before:
            return False
        with self._patiently():
            if not self._sealer.index_is_marked():
                return False
            with self._sealer.writing(wait=False, progress=self._indexing):
                pass
        now = time.monotonic()
        self._mend_not_before = now + 9 * (now - started)
        return True

    def _indexing(self, done: int, to_do: int) -> None:  # noqa: ARG002
        """An index that is behind may take long; the miner is alive while it grows."""
        self._status.working(INDEXING_S)
        self._notifier.alive()
