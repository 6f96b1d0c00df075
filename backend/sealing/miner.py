"""Seals pending transactions into blocks, unless a cluster does. An import seals blocks, too.

Exactly one miner runs for a chain, however many processes try: it holds `miner.lock` as long as it
runs. For each round it also takes the writer lock, which an import holds while it runs. In a round
it seals what is pending (`sealer`).

A round begins every interval, and at once when enough is pending for a full block; none begins
while `trusted_clock` doubts the clock. During the rounds a thread checks what is on the disk
(`scrub`). `miner_status` tells `/tip`, `/health/ready` and the supervisor what the miner is doing.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from backend.base import files
from backend.base.errors import DamagedBlock, DamagedMempool, TryLater, WriterBusy
from backend.base.processes.shared_numbers import MinerNumbers
from backend.base.processes.systemd import Notifier
from backend.base.settings import Settings
from backend.base.words import Report, Trouble, counted
from backend.chain.block import MAX_TRANSACTIONS
from backend.index.damage_mark import IndexRebuilder
from backend.sealing.miner_status import INDEXING_S, LOCK_NAME, Announcer
from backend.sealing.sealer import POLL_S, Sealer
from backend.storage.damage_notes import DamageNotes
from backend.storage.layout import make_ledger_folder
from backend.verify.scrub import scrubbing

RETRY_S = 1.0  # the pause after an error that a person may have to repair
ONE_MINER = (
    "a service or another miner already seals the flights of this ledger; stop it before you start "
    "this one"
)


class Miner:
    """The one miner of a chain, which does rounds until it is told to stop."""

    def __init__(
        self, settings: Settings, report: Report, notifier: Notifier | None = None
    ) -> None:
        """notifier: is told when the rounds begin, that the miner lives, and when they end."""
        self._settings = settings
        self._report = report
        self._notifier = notifier or Notifier({}, report)
        self._lock = files.FileLock(settings.folder / LOCK_NAME, remedy=ONE_MINER)
        self._status = Announcer(settings.folder, report)
        self._numbers = MinerNumbers()
        self._sealer = Sealer(settings, report, self._note_sealed)
        self._is_stopping = False
        self._rebuilder = IndexRebuilder(self._sealer.index.is_marked, self._rebuild_index)
        self._trouble = Trouble(report)  # what keeps it from sealing
        self._pause = threading.Event()  # never set

    def stop(self) -> None:
        """Make `run` finish the block in hand and return; a pause ends within `POLL_S`.

        Signal handlers may call this. They may run while their own thread holds a lock, for
        instance that of an Event, so no lock is taken here.
        """
        self._is_stopping = True

    def _wait_at_work(self, seconds: float) -> None:
        """Pause for `seconds`, or until `stop`, and go on announcing that the miner is alive."""
        until = time.monotonic() + seconds
        while not self._is_stopping and (left := until - time.monotonic()) > 0:
            self._status.working()
            self._notifier.alive()
            self._pause.wait(min(POLL_S, left))

    def run(self) -> None:
        """Mine until `stop`. Raises WriterBusy if a miner runs already; else as `Sealer`."""
        make_ledger_folder(self._settings.folder)
        self._lock.acquire(wait=False)
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
        """Repair the files, and bring the index to the tip, before anything else.

        The mempool comes first: nobody can read it meanwhile, and an index may take long.
        """
        try:
            while not self._is_stopping:
                with self._patiently(), self._sealer.writing(wait=False, follow=False):
                    with self._patiently():
                        self._pending()
                    self._sealer.index.follow(self._indexing)
                    return
        except DamagedBlock as error:  # `ready` is to name it while no miner can run
            DamageNotes(self._settings.folder).met(error)
            raise

    def _rounds(self) -> None:
        interval_s = self._settings.mine_interval_s
        due = time.monotonic() + interval_s
        self._status.next_round(interval_s)
        while not self._is_stopping:
            if self._sealer.wait_for_clock(self._waits_for_clock):
                self._pausing_until(due)
            is_due = time.monotonic() >= due
            if is_due or self._is_block_full():
                self._round(only_full=not is_due)
                if is_due:  # keep the pace; rounds that were missed are not made up for
                    missed = math.floor((time.monotonic() - due) / interval_s)
                    due += interval_s * (missed + 1)
                self._pausing_until(due)
            if self._rebuild_if_marked():
                self._pausing_until(due)
            self._notifier.alive()
            self._numbers.sample(self._sealer.index.rebuild_count)
            self._pause.wait(min(POLL_S, due - time.monotonic()))

    def _pausing_until(self, due: float) -> None:
        """Announce that there is nothing to do until the round that is due at `due`."""
        self._status.next_round(max(0.0, due - time.monotonic()))

    def _waits_for_clock(self) -> bool:
        """Wait for the clock for a moment. Returns whether to go on waiting."""
        self._wait_at_work(POLL_S)
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
            self._trouble.end("blocks can be sealed again")

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
            mempool.repair()
            return mempool.pending_count()

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Swallow what keeps the miner from sealing, which may pass, after a report and a pause."""
        try:
            yield
        except WriterBusy:
            self._wait_at_work(POLL_S)  # an import is running; it seals what is pending, too
        except (TryLater, DamagedMempool, OSError) as error:
            self._trouble.report(f"cannot seal blocks now, so flights stay pending: {error}")
            self._wait_at_work(RETRY_S)  # not longer, because the clock may soon be right again

    def _note_sealed(self, transactions: int, seconds: float) -> None:
        """Count a block, and announce that the miner is alive however many are to be sealed."""
        self._numbers.sealed(transactions, seconds)
        self._status.working()

    def _rebuild_if_marked(self) -> bool:
        """Rebuild the index if it is marked as wrong. Returns whether that was done, or tried."""
        with self._patiently():
            if not self._rebuilder.look():
                return False
        return True

    def _rebuild_index(self) -> None:
        with self._sealer.writing(wait=False, progress=self._indexing):
            pass

    def _indexing(self, done: int, to_do: int) -> None:  # noqa: ARG002
        """Announce that the miner is alive while it works on an index, which may take long."""
        self._status.working(INDEXING_S)
        self._notifier.alive()
