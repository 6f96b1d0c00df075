"""Puts transactions into blocks, and blocks into the index: for the miner, and for an import.

Who seals holds the writer lock. A block is appended and synced, then becomes visible, then goes
into the index, and then the mempool is trimmed. A crash between any two steps loses nothing: a
transaction is pending until its id is below the number of transactions in the chain.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import DamagedMempool
from backend.base.progress import Progress, no_progress
from backend.base.settings import Settings
from backend.base.words import Report
from backend.chain.block import MAX_TRANSACTIONS, Block
from backend.chain.columns import Columns, columns_of
from backend.chain.flight import Flight
from backend.chain.merkle import Frontier
from backend.chain.state import Content, ForeseenRoot, content_of
from backend.index.follower import IndexFollower
from backend.index.writer import SealedBlock
from backend.mempool import Mempool, PendingInRecovery
from backend.sealing.trusted_clock import TrustedClock
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.storage.codec import compress
from backend.storage.layout import make_ledger_folder, require_ledger
from backend.storage.receipt_store import require_no_cluster
from backend.trust.log.signing import CheckpointSigner
from backend.trust.log.tree import HistoryTree
from backend.verify.folder_check import require_may_begin, require_one_ledger

POLL_S = 0.2

OnSealed = Callable[[int, float], None]  # a block's transactions, and the seconds it took


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The content of a block that is not sealed yet, its body as it will be stored, and its root.

    foreseen: if it was made already, for the id that the first transaction should get.
    """

    content: Content
    compressed_body: bytes
    foreseen: ForeseenRoot | None = None


def pause() -> bool:
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
        on_sealed: OnSealed = lambda transactions, seconds: None,
        *,
        accepts_loss: bool = False,
    ) -> None:
        """on_sealed: is called for every block of pending transactions.

        accepts_loss: whether a person has decided to go on with blocks that are older than the rest
        of the folder.
        """
        self._settings = settings
        self._report = report
        self._on_sealed = on_sealed
        self._store = BlockStore(settings.folder)
        self._tree = HistoryTree(self._store)
        self.clock = TrustedClock(settings, self._store, report, seals=True)
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
        self._signer = CheckpointSigner(settings.folder, self._store, self._tree, report)

    def _require_one_ledger(self, history: Frontier) -> None:
        self._tree.remember(history)
        require_one_ledger(
            self._settings.folder, self._store, self._tree, accepts_loss=self._accepts_loss
        )
        if self._accepts_loss:
            self.mempool.accept_loss()

    def height(self) -> int:
        """Return the height of the tip. Only inside `writing`."""
        return self._writer.state.height

    def wait_for_clock(self, goes_on: Callable[[], bool] = pause) -> bool:
        """Wait until the clock is believed, and report that. Returns whether it had to wait.

        goes_on: is called again and again while the clock is doubted; it takes a moment, and
        returns whether to go on waiting.
        """
        if (doubt := self.clock.doubt()) is None:
            return False
        self._report(str(doubt))
        while goes_on():
            if self.clock.doubt() is None:
                self._report("the clock is trusted again; sealing continues")
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
        make_ledger_folder(self._settings.folder)
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

        What comes while the last block is sealed is left for the next time: else a stream of posts
        would be sealed in blocks of a few flights, without an end.

        empty: seal an empty block if nothing is pending. only_full: leave transactions that do not
        fill a block. Raises TryLater as `seal` does.
        """
        sealed: list[Block] = []
        is_full = True
        while is_full and (accepted := self.mempool.pending(MAX_TRANSACTIONS)):
            state = self._writer.state
            if accepted[0].first_transaction != state.transactions:
                first = accepted[0].first_transaction
                raise DamagedMempool(
                    f"the first pending flight is transaction {first}, but the next block begins "
                    f"with {state.transactions}; nothing is sealed"
                )
            flights = [flight for part in accepted for flight in part.flights]
            is_full = len(flights) == MAX_TRANSACTIONS
            if is_full or not only_full:
                times = [repeat(part.timestamp, len(part.flights)) for part in accepted]
                sealed += self._seal_one(flights, list(chain(*times)))
        if empty and not sealed:
            sealed += self._seal_one([], [])
        return sealed

    def _seal_one(self, flights: Sequence[Flight], times: Sequence[int]) -> list[Block]:
        """Seal a block, and tell `on_sealed` how long it took until it was in the index."""
        started = time.perf_counter()
        blocks = self.seal([unsealed(columns_of(flights, times))])
        self._on_sealed(len(flights), time.perf_counter() - started)
        return blocks

    def seal(self, many: Sequence[Unsealed]) -> list[Block]:
        """Seal one block for each of `many`, with one sync for all. Only inside `writing`.

        Raises TryLater while the clock is doubted, and if the disk is nearly full.
        """
        files.require_free(self._settings.folder, self._settings.min_free_bytes)
        blocks: list[Block] = []
        for made in many:
            block = self._writer.state.build(self.clock.now_ms(), made.content, made.foreseen)
            self._writer.append(block, made.compressed_body)
            blocks.append(block)
        self._writer.commit()
        pairs = zip(blocks, many, strict=True)
        new = [SealedBlock(b.header, b.hash, made.content.columns) for b, made in pairs]
        if self._for_later is None:
            self.index.apply(new)
        else:
            self._for_later += new
        return blocks

    @contextmanager
    def indexing_later(self) -> Iterator[None]:
        """Take what is sealed inside into the index at the end, when a lock has been released.

        First the index takes in what was sealed before. So it lacks the blocks of one such time at
        most when this process is killed, and the next start has not much to take in.
        """
        self.index.wait()
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
