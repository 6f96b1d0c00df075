"""Appends the cluster's blocks to this node's chain, with receipts, index and checkpoint.

The order is that of durability: the receipts, then the block file, then the table of heights, then
the index. See the package's docstring for what a crash between any two of them leaves.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from backend.base.clock import now_ms
from backend.base.errors import FlightchainError
from backend.base.settings import Settings
from backend.base.words import Report
from backend.chain.block import Block
from backend.chain.columns import columns_of
from backend.chain.flight import Flight
from backend.chain.state import ChainState, Content, content_of
from backend.cluster.log_key import adopt_common_key
from backend.cluster.membership import Membership, require_base
from backend.cluster.transaction_selection import Rows
from backend.index.follower import IndexFollower
from backend.index.writer import SealedBlock
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.storage.codec import compress
from backend.storage.layout import Place
from backend.storage.receipt_store import Entry, ReceiptWriter
from backend.trust.log import checkpoints
from backend.trust.log.log_checks import signed_size
from backend.trust.log.signing import CheckpointSigner
from backend.trust.log.tree import HistoryTree
from backend.verify.folder_check import require_one_ledger


@dataclass(frozen=True, slots=True)
class Built:
    """A block that is not on the disk yet, and what is kept of it."""

    block: Block
    content: Content
    entry: Entry
    rows: Rows

    def flights_of(self, node: int) -> list[Flight]:
        """Return the flights of a member in the order of their numbers."""
        pairs = zip(self.rows.flights, self.rows.senders, strict=True)
        return [flight for flight, sender in pairs if sender == node]


class _HeldByEngine:
    """The `Pending` of recovery: a torn tip may be cut off, as the engine replays it."""

    def __init__(self, transactions: int) -> None:
        """transactions: how many the chain held when the cluster began; those nobody replays."""
        self._transactions = transactions

    def locked(self) -> AbstractContextManager[None]:
        """Lock nothing: ids are given only by the one process that recovers."""
        return nullcontext()

    def holds(self, first: int, following: int) -> bool:  # noqa: ARG002
        """Return whether the engine holds all from id `first` on."""
        return first >= self._transactions

    def contradiction(self, place: Place, block: Callable[[], Block]) -> str | None:  # noqa: ARG002
        """Return None, because blocks of the same flights are the same."""
        return None


class BlockAppender:
    """The end of the chain in `settings.folder`, which this process alone writes after `open`.

    store, receipts, follower: its blocks, receipts and index.
    """

    def __init__(self, settings: Settings, membership: Membership, report: Report) -> None:
        """Touch nothing yet."""
        self._folder, self._report = settings.folder, report
        self.store = BlockStore(settings.folder)
        self.receipts = ReceiptWriter(settings.folder, self.store)
        self._membership = membership
        self._writer = BlockWriter(
            settings,
            now_ms,
            report,
            _HeldByEngine(membership.transactions),
            self._begins_none,
            # blocks that are missing come from the engine again
            lambda history: require_one_ledger(settings.folder, self.store, accepts_loss=True),
        )
        self.follower = IndexFollower(settings.folder, self.store, report)
        tree = HistoryTree(self.store)
        self._signer = CheckpointSigner(settings.folder, self.store, tree, report)

    def _begins_none(self) -> None:
        raise FlightchainError(
            f"the chain is missing: every node begins with a copy of the chain up to block "
            f"{self._membership.height} {self._membership.hash}; put `base/blocks` there, as "
            "docs/how-to/cluster.md says"
        )

    def open(self, own: int | None, home: Path) -> int:
        """Recover the files. Returns the height of the engine's block that the chain stands at.

        own: the index of this node. home: the folder of its engine, which has the key of the
        cluster's log. Raises WriterBusy, Damage or WriteFailed; FlightchainError if
        this is not the chain of the cluster.
        """
        self._writer.acquire(wait=False)
        require_base(self.store, self._membership)
        self.receipts.begin(own)
        state = self._writer.state
        reached = self.receipts.align(state.height, state.tip_hash, self._membership.height)
        self.follower.follow()
        self.follower.close()  # notes that the index is whole, be it a copy, before others ask it
        self.follower.follow()
        origin = checkpoints.origin_of(self.store.place(0).hash.hex())
        adopt_common_key(home, self._folder, origin, self._report)
        self._sign()
        return reached

    def _sign(self) -> None:
        """Sign the chain, unless it is given again and has not come to what was signed before."""
        if self.state.height + 1 >= signed_size(self._folder):
            self._signer.sign(self.state)

    @property
    def state(self) -> ChainState:
        return self._writer.state

    def build(self, header_ms: int, rows: Rows, engine_height: int, proposer: str) -> Built:
        """Build the next block; nothing is written.

        header_ms: the time in the header of the engine's block, UTC milliseconds.
        """
        content = content_of(columns_of(rows.flights, rows.times))
        block = self.state.build(header_ms, content)
        entry = Entry(
            block.header.height, block.hash, engine_height, proposer, rows.senders, rows.runs
        )
        return Built(block, content, entry, rows)

    def append(self, built: Built) -> None:
        """Append a block, durably and to the index. Raises WriteFailed."""
        self.receipts.add(built.entry)
        self._writer.append(built.block, compress(built.block.body))
        self._writer.commit()
        block = built.block
        self.follower.apply([SealedBlock(block.header, block.hash, built.content.columns)])
        self._sign()

    def close(self) -> None:
        """Close all files and release the lock."""
        self.follower.close()
        self._writer.close()
        self.receipts.close()
        self.store.close()
