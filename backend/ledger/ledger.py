"""Does everything that the API and the command line ask of a ledger.

Each process has one `Ledger`. It reads blocks through the two caches, and tells how the ledger
does; its `answers` ask the index or scan, and its `submitter` takes flights into the mempool. It
never writes a block. It is safe for threads.
"""

from collections.abc import Iterable
from functools import partial
from itertools import islice
from typing import Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from backend.base import errors
from backend.base.clock import now_ms
from backend.base.errors import Damage, NotFound, TryLater
from backend.base.settings import Settings
from backend.base.words import Report, counted
from backend.chain.block import Block
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, as_mapping
from backend.chain.json_objects import Json
from backend.cluster.node_status import ClusterStatus
from backend.cluster.view import ClusterState, view_of
from backend.index.completions import airports_in
from backend.index.queries import IndexReader
from backend.ledger.answers import Answers, tip_height
from backend.ledger.known_flights import RecordsInBlocks
from backend.ledger.submission import Submitter
from backend.mempool import Mempool
from backend.questions.answer_types import Answer, Count, Hash, Milliseconds
from backend.sealing.miner_status import next_block_at, why_no_miner
from backend.sealing.trusted_clock import TrustedClock
from backend.sources.airports import Lookup
from backend.storage import damage_notes
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks, Where
from backend.storage.codec import encoded_rows
from backend.storage.damage_notes import DamageNotes
from backend.storage.emulated import EmulatedDisk
from backend.storage.recovery import WHAT_TO_DO
from backend.trust.log import tiles
from backend.trust.log.tiles import Tile
from backend.trust.log.tree import HistoryTree
from backend.trust.proofs import Prover
from backend.verify.folder_check import FolderCheck, require_own_blocks, why_no_blocks
from backend.verify.scrub_state import FILE as SCRUB
from backend.verify.scrub_state import ScrubState

_decode = msgspec.json.Decoder(Json).decode


class Encoded(NamedTuple):
    """A block or a part of it as JSON, and the block's hash in hexadecimal."""

    hash: str
    json: bytes


class Tip(Answer):
    """State of the ledger."""

    height: Count
    hash: Hash
    timestamp: Milliseconds
    transactions: Count
    pending: Count
    next_block_at: Annotated[
        Count | None,
        Meta(
            description="when the miner seals pending flights next, UTC milliseconds; without any, "
            "it seals a block only if FLIGHTCHAIN_MINE_EMPTY is 1. null: no miner is running"
        ),
    ]
    cluster: ClusterState | UnsetType = UNSET


class DamagedBlock(Answer):
    """A block that cannot be read, with what the table of heights says about it."""

    height: Count
    hash: Hash | None
    first_transaction: Count | None
    transaction_count: Count | None
    detail: Annotated[str, Meta(description="what is wrong with it")]


class BlockList(NamedTuple):
    """Blocks of a list, newest first.

    headers: of those that can be read. damaged: what the table of heights says of the others, and
    what is wrong with them. lowest: the height at which the list ends, read or not; 0 without any.
    """

    headers: list[Json]
    damaged: list[DamagedBlock]
    lowest: int


class Ledger:
    """The ledger in `settings.folder`.

    cached_blocks: knows which blocks are in memory, and where transactions are. answers: to
    questions about flights. submitter: takes flights. prover: proves what is in blocks.
    """

    def __init__(self, settings: Settings, report: Report) -> None:
        """report: takes messages about what was repaired in the mempool, or is wrong."""
        self.settings = settings
        self._store = BlockStore(
            settings.folder,
            partial(require_own_blocks, settings.folder),
            partial(why_no_blocks, settings.folder),
        )
        self._notes = DamageNotes(settings.folder)
        disk = EmulatedDisk(settings.emulated_disk) if settings.emulated_disk else None
        self.cached_blocks = CachedBlocks(
            self._store,
            settings.cache_bytes,
            settings.read_run_blocks,
            settings.unpacked_bytes,
            disk,
            self._notes,
        )
        self._tree = HistoryTree(self._store)
        self._folder_check = FolderCheck(settings, self._store, self._tree)
        self.prover = Prover(settings.folder, self.cached_blocks, self._tree)
        self._index = IndexReader(settings.folder, self._store, report)
        self._cluster = view_of(settings, self._store)
        first_pending = self.mined_count if self._cluster is None else self._cluster.mined
        self._mempool = Mempool(settings, first_pending, report)
        self._clock = TrustedClock(settings, self._store, report)
        self.answers = Answers(self._store, self.cached_blocks, self._index)
        in_blocks = RecordsInBlocks(self._index, self._store, self.cached_blocks)
        self.submitter = Submitter(
            self._mempool, self._index, in_blocks, self._clock, self._cluster, self.mined_count
        )

    def airports(self) -> Lookup:
        """Return what finds airports in the flights that are stored now."""
        return airports_in(self._index)

    def close(self) -> None:
        self._mempool.close()
        self._index.close()
        self._store.close()
        if self._cluster is not None:
            self._cluster.close()

    # --- the log -----------------------------------------------------------------------------

    def tile(self, tile: Tile) -> bytes:
        """Return a tile of the log. Raises NotFound if the log is not long enough for it."""
        if not tiles.is_there(tile, size := self._tree.size()):
            raise NotFound(
                f"the log has {counted(size, 'block')}, so tile {tile.name} does not exist"
            )
        return tiles.content(self._tree, tile)

    # --- blocks and transactions -------------------------------------------------------------

    def encoded_block(self, height: int, offset: int, limit: int) -> Encoded:
        """Return a block as JSON, with up to `limit` of its transactions from row `offset` on.

        It is made several times faster than from decoded columns.
        """
        block = self.cached_blocks.cached_block(height)
        header = msgspec.json.encode(block.header).removesuffix(b"}")
        rows = b",".join(encoded_rows(block, offset, limit))
        more = b',"hash":"%b","transactions":[%b]}' % (block.hash.encode(), rows)
        return Encoded(block.hash, header + more)

    def blocks(self, before: int | None, limit: int, beginning: str | None = None) -> BlockList:
        """Return headers with hashes: the `limit` blocks below `before` (None: the tip).

        beginning: only the blocks whose hash begins with these hex digits, however far below.
        """
        top = self._store.height() if before is None else min(before - 1, self._store.height())
        heights: Iterable[int] = range(top, max(-1, top - limit), -1)
        if beginning is not None:
            alike = self._store.heights_of_hash(beginning)
            heights = list(islice((height for height in alike if height <= top), limit))
        block_list = BlockList([], [], min(heights, default=0))
        for height in heights:
            try:
                block_list.headers.append(_header(self.cached_blocks.block(height)))
            except Damage as error:
                block_list.damaged.append(self._damaged(height, error))
        return block_list

    def _damaged(self, height: int, error: Damage) -> DamagedBlock:
        """Return what is known of a block that cannot be read."""
        try:
            place = self._store.place(height)
        except Damage:  # of its entry in the table of heights
            return DamagedBlock(height, None, None, None, str(error))
        first, count = place.first_transaction, place.transaction_count
        return DamagedBlock(height, place.hash.hex(), first, count, str(error))

    def transaction(self, transaction_id: int) -> Json:
        """Return a transaction, pending or mined. Raises NotFound."""
        pending = self._mempool.find(transaction_id) if self._cluster is None else None
        where = self.cached_blocks.where_transaction(transaction_id)  # it may just have been mined
        if where is not None:
            return _decode(self.encoded_transaction(transaction_id, where))
        if pending is None:
            raise NotFound(f"transaction {transaction_id} does not exist")
        flight, timestamp = pending
        return _pending(flight, transaction_id, timestamp)

    def accepted_as(self, receipt: str) -> Json:
        """Return the transaction that a receipt of the cluster stands for, pending or mined.

        Raises NotFound.
        """
        if self._cluster is None:
            raise NotFound("this ledger belongs to no cluster; ask for /transactions/ID")
        own_number = self._cluster.own_number(receipt)
        pending = None if own_number is None else self._mempool.find(own_number)
        transaction_id = self._cluster.id_by(receipt)  # now, as it may just have been mined
        if transaction_id is not None:
            mined = self.transaction(transaction_id)
            values = (mined["transaction"][name] for name in FIELD_NAMES)
            self._cluster.require_same(receipt, tuple(values))
            return mined
        if pending is None:
            advice = (
                "while it is pending, ask the node that accepted it"
                if own_number is None
                else "if this node does not catch up just now, it does not know the flight, or has "
                "lost it with an older copy of its folder: add it again"
            )
            raise NotFound(f"the flight of receipt {receipt} is in no block; {advice}")
        flight, timestamp = pending
        self._cluster.require_same(receipt, flight)
        return _pending(flight, None, timestamp)

    def encoded_transaction(self, transaction_id: int, where: Where) -> bytes:
        """Return the transaction at `where`, as JSON. Raises NotFound or DamagedBlock."""
        block = self.cached_blocks.cached_block(where.height)
        (row,) = encoded_rows(block, transaction_id - block.header.first_transaction, 1)
        mined_in = b'{"height":%d,"hash":"%b"}' % (where.height, block.hash.encode())
        return b'{"state":"mined","transaction":%b,"block":%b}' % (row, mined_in)

    def transactions(self, first: int, count: int) -> list[msgspec.Raw]:
        """Return up to `count` mined transactions from id `first` on, each as JSON."""
        rows: list[msgspec.Raw] = []
        after = min(first + count, self.mined_count())
        while first + len(rows) < after:
            holder = self._store.place_of_transaction(first + len(rows))
            if holder is None:  # the chain has been cut meanwhile
                break
            block = self.cached_blocks.block(holder[0])
            row = first + len(rows) - block.header.first_transaction
            rows += map(msgspec.Raw, encoded_rows(block, row, after - first - len(rows)))
        return rows

    def tip(self) -> Tip:
        """Return the newest block, how many transactions blocks hold, and how many are pending."""
        height, pending = self._height_and_pending()
        block = self.cached_blocks.cached_block(height)
        header = block.header
        return Tip(
            height=height,
            hash=block.hash,
            timestamp=header.timestamp,
            transactions=header.first_transaction + header.transaction_count,
            pending=pending,
            next_block_at=next_block_at(self.settings.folder),
            cluster=UNSET if self._cluster is None else self._cluster.state(),
        )

    def _height_and_pending(self) -> tuple[int, int]:
        """Return the height and the pending count of one moment: each transaction counts once."""
        height = self.height()
        while True:
            pending = self._mempool.pending_count()
            if (now := self.height()) == height:
                return height, pending
            height = now

    def not_ready(self) -> list[str]:
        """Return the reasons why the service cannot do all its work now; empty if it can."""
        reasons: list[str] = []
        try:
            self.cached_blocks.block(self.height())
        except Damage as error:
            is_bad_block = isinstance(error, errors.DamagedBlock)  # else it says what to do
            reasons.append(f"{error}; {WHAT_TO_DO}" if is_bad_block else str(error))
        except TryLater as error:
            reasons.append(str(error))
        reasons += self._folder_check.problems()
        reasons += self._mempool.not_ready()
        if self._cluster is not None:
            reasons += self._cluster.not_ready()
        elif reason := why_no_miner(self.settings.folder):
            reasons.append(reason)
        if doubt := self._clock.doubt():
            reasons.append(str(doubt))
        try:
            self._index.look()
            if lag := self.index_lag_blocks():
                reasons.append(f"the index is {counted(lag, 'block')} behind the chain")
        except TryLater as error:
            reasons.append(str(error))
        if (scrub := SCRUB.read(self.settings.folder)) and scrub.problem:
            reasons.append(f"the scrub found that {scrub.problem}")
        reasons += damage_notes.reasons(self._notes, {self._store.height()})
        return list(dict.fromkeys(reasons))  # several parts may miss the same blocks

    def cluster_status(self) -> ClusterStatus:
        """Return how the cluster does. Raises NotFound without one, TryLater without its node."""
        if self._cluster is None:
            raise NotFound("this ledger belongs to no cluster")
        return self._cluster.status()

    def damaged_blocks(self) -> list[int]:
        """Return the heights of the blocks that are known to be damaged. No block is read."""
        return list(self._notes.known())

    def height(self) -> int:
        """Return the height of the tip. Raises TryLater without a chain."""
        return tip_height(self._store)

    def mined_count(self) -> int:
        return self._store.transactions()

    def pending_count(self) -> int:
        """Return how many transactions are pending. Raises DamagedMempool."""
        return self._mempool.pending_count()

    def oldest_pending_age_s(self) -> float:
        """Return how long the oldest pending transaction has waited; 0 without any."""
        oldest = self._mempool.oldest_pending_at()
        return 0.0 if oldest is None else max(0, now_ms() - oldest) / 1000

    def index_lag_blocks(self) -> int:
        """Return how many blocks the index is behind the tip. Raises TryLater without an index."""
        indexed = self._index.position().height
        return max(0, self._store.height() - indexed)

    def index_is_trusted(self) -> bool:
        """Return whether there is an index, and it is not known to be wrong."""
        try:
            self._index.look()
        except TryLater:
            return False
        return True

    def scrub(self) -> ScrubState:
        """Return how far the scrub is. Raises TryLater before one has begun."""
        state = SCRUB.read(self.settings.folder)
        if state is None:
            raise TryLater("the scrub has not checked anything yet")
        return state

    def scrub_problems(self) -> int:
        """Return how many damaged blocks and other problems are known. Raises TryLater as above."""
        return len(self._notes.known()) + bool(self.scrub().problem)

    def scrub_completed_s(self) -> float:
        """Return when the last whole pass of the scrub ended, Unix seconds. Raises TryLater."""
        completed_at = self.scrub().completed_at
        if completed_at is None:
            raise TryLater("the scrub has not checked everything yet")
        return completed_at / 1000


def _header(block: Block) -> Json:
    return {**msgspec.to_builtins(block.header), "hash": block.hash}


def _pending(flight: Flight, transaction_id: int | None, timestamp: int) -> Json:
    known = {"TRANSACTION_ID": transaction_id, "timestamp": timestamp, **as_mapping(flight)}
    return {"state": "pending", "transaction": known, "block": None}
