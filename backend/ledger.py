"""Does everything that the API and the command line ask of a ledger.

Each process has one `Ledger`. It reads blocks through the two caches, asks the index, and accepts
flights into the mempool; it never writes a block. It is safe for threads.

In a cluster the mempool's ids are numbers of this node, and flights get ids of the ledger when they
are mined (`cluster.view`).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from backend.chain.block import Block, Header
from backend.chain.columns import Columns, decode_body
from backend.chain.fields import Value
from backend.chain.flight import Flight, as_mapping
from backend.chain.merkle import leaf_hash
from backend.chain.single_transactions import transactions_json
from backend.chain.transaction import transaction, transaction_bytes
from backend.checking import scrub_state
from backend.checking.scrub_state import ScrubState
from backend.clock import now_ms
from backend.cluster.status import ClusterStatus
from backend.cluster.view import view_of
from backend.errors import Damage, KeyReused, NotFound, TryLater
from backend.index import suggestions
from backend.index.coverage import covered
from backend.index.queries import RECENT_S, AsOf, IndexReader, State
from backend.mempool import Accepted, Mempool, Offer, Refused
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.proofs.prover import Prover
from backend.questions import scan
from backend.questions.distribution import distribution_of
from backend.questions.groups import Key, arranged
from backend.questions.selection import Selection
from backend.questions.values import (
    AverageDelays,
    Delays,
    DelayTotals,
    FilterTransactions,
    FlightCounter,
    FlightCounts,
    Options,
    Question,
    understood,
)
from backend.sealing.miner_status import next_block_at, why_no_miner
from backend.sealing.trusted_clock import TrustedClock
from backend.settings import Settings
from backend.storage import damage_notes
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks, Where
from backend.storage.damage_notes import DamageNotes
from backend.storage.emulated import EmulatedDisk
from backend.storage.files import free_bytes
from backend.storage.recovery import WHAT_TO_DO
from backend.storage.scan_costs import Costs
from backend.storage.unpacked import CacheStatistics
from backend.transparency import tiles
from backend.transparency.tiles import Tile
from backend.transparency.tree import HistoryTree
from backend.words import counted

Json = dict[str, Any]
Report = Callable[[str], None]
Found = TypeVar("Found")
Counted = TypeVar("Counted", Delays, FlightCounts)

COMMIT_POLL_S = 0.02
MOST_DUPLICATES_SHOWN = 100
NEAR_BLOCKS = 60  # an hour of them; to scan one takes about a millisecond
_HEADER_NAMES = tuple(field.name for field in fields(Header))
_OF_PLACE = ("hash", "first_transaction", "transaction_count")  # of the table of heights
NO_CHAIN = "the chain does not exist yet; the miner creates it when it starts"


class Encoded(NamedTuple):
    """A block or a part of it as JSON, and the block's hash in hexadecimal."""

    hash: str
    json: bytes


class BlockList(NamedTuple):
    """Blocks of a list, newest first.

    headers: of those that can be read. damaged: what the table of heights says of the others, and
    what is wrong with them. lowest: the height at which the list ends, read or not; 0 without any.
    """

    headers: list[Json]
    damaged: list[Json]
    lowest: int


class Ledger:
    """The ledger in `settings.folder`: answers questions and accepts flights.

    prover: proves what is in its blocks.
    """

    def __init__(self, settings: Settings, report: Report) -> None:
        """report: takes messages about what was put right in the mempool's log, or is wrong."""
        self.settings = settings
        self._store = BlockStore(settings.folder)
        self._notes = DamageNotes(settings.folder)
        disk = EmulatedDisk(settings.emulated_disk) if settings.emulated_disk else None
        self._blocks = CachedBlocks(
            self._store,
            settings.cache_bytes,
            settings.read_run_blocks,
            settings.unpacked_bytes,
            disk,
            self._notes,
        )
        self._tree = HistoryTree(self._store)
        self.prover = Prover(settings.folder, self._blocks, self._tree)
        self._index = IndexReader(settings.folder, self._store, report)
        self._cluster = view_of(settings, self._store)
        first_pending = self.mined_count if self._cluster is None else self._cluster.mined
        self._mempool = Mempool(settings, first_pending, report)
        self._clock = TrustedClock(settings, self._store, report)
        self._is_stopping = False

    def stop_waiting(self) -> None:
        """Answer all requests that wait for a block, within `COMMIT_POLL_S`, before the end.

        Signal handlers may call this. They may run while their own thread holds a lock, for
        instance that of an Event, so no lock is taken here.
        """
        self._is_stopping = True

    def before_each_block(self, wait: Callable[[], None]) -> None:
        """Have scans and exports call `wait` before each block, to let other requests go first."""
        self._blocks.give_way = wait

    def close(self) -> None:
        """Close every file."""
        self._mempool.close()
        self._index.close()
        self._store.close()
        if self._cluster is not None:
            self._cluster.close()

    # --- the log -----------------------------------------------------------------------------

    def tile(self, tile: Tile) -> bytes:
        """A tile of the log. Raises NotFound if the log is not long enough for it."""
        if not tiles.is_there(tile, size := self._tree.size()):
            raise NotFound(
                f"the log has {counted(size, 'block')}, so tile {tile.name} does not exist"
            )
        return tiles.content(self._tree, tile)

    # --- the three questions -----------------------------------------------------------------

    def filter_transactions(
        self, question: FilterTransactions, options: Options, costs: Costs | None = None
    ) -> Json:
        """What happened to a flight number on a day: its legs, in the order of ids.

        All three questions raise NotFound for an `as_of` above the tip, TryLater while the index is
        missing or behind, and DamagedBlock when a scan meets a bad block. costs: takes the times of
        a scan's stages.
        """
        if options.engine == "scan":
            as_of = self._scanned(options)
            legs = scan.legs(self._blocks, question, as_of.height, costs)
        else:
            legs, as_of = self._indexed(lambda below: self._index.legs(question, below), options)
        flights = options.shown.page(legs)
        return {"count": len(legs), "flights": flights, **_context(question, options, as_of)}

    def average_delays(
        self, question: AverageDelays, options: Options, costs: Costs | None = None
    ) -> Json:
        """How late flights were: means, counts and shares. Without flights, means are None."""
        if options.engine == "scan":
            as_of = self._scanned(options)
            delays = scan.delays(self._blocks, question, options, as_of.height, costs)
        else:
            delays, as_of = self._counted(
                lambda below: self._index.delays(question, options, below),
                lambda first, last: scan.delays(self._blocks, question, options, last, first=first),
                options,
            )
        answer = _averages(delays.totals)
        groups = {key: _averages(totals) for key, totals in delays.groups.items()}
        answer |= _grouped(groups, "flights", answer, options)
        if options.distribution:
            answer["distribution"] = distribution_of(delays.counts)
        return {**answer, **_context(question, options, as_of)}

    def flight_counter(
        self, question: FlightCounter, options: Options, costs: Costs | None = None
    ) -> Json:
        """How many flights went from one place to another."""
        if options.engine == "scan":
            as_of = self._scanned(options)
            counts = scan.flight_counts(self._blocks, question, options, as_of.height, costs)
        else:
            counts, as_of = self._counted(
                lambda below: self._index.flight_counts(question, options, below),
                lambda first, last: scan.flight_counts(
                    self._blocks, question, options, last, first=first
                ),
                options,
            )
        answer: Json = {"count": counts.count}
        groups = {key: {"count": count} for key, count in counts.groups.items()}
        answer |= _grouped(groups, "count", answer, options)
        return {**answer, **_context(question, options, as_of)}

    def suggest(self, field: str, q: str, limit: int) -> Json:
        """Completions of `q` for a field of `suggestions.FIELDS`. Raises InvalidQuery, TryLater."""
        q = suggestions.typed(field, q)
        found, as_of = self._index.snapshot(
            lambda rows: suggestions.suggested(rows, field, q, limit)
        )
        return {"field": field, "q": q, "suggestions": found, "as_of": asdict(as_of)}

    def coverage(self) -> Json:
        """What the ledger covers, as `coverage.covered` tells. Raises TryLater."""
        found, as_of = self._index.snapshot(covered)
        return {**found, "as_of": asdict(as_of)}

    def recent_state(self) -> State:
        """The state of the index from which answers come, at most a moment old. Raises TryLater.

        `add` waits that moment before it returns that a flight is mined, so that later answers
        count the flight.
        """
        return self._index.recent_state()

    # --- export ------------------------------------------------------------------------------

    def as_of(self, height: int | None) -> Json:
        """The `as_of` of answers at `height`, or at the tip. Raises NotFound, TryLater."""
        return asdict(self._scanned(Options(as_of=height)))

    def flights(
        self, selection: Selection, height: int
    ) -> Iterator[tuple[Header, Columns, Sequence[int]]]:
        """The blocks among 0 to `height` that hold selected flights: header, columns, and the rows.

        Every block is verified on the way. Raises DamagedBlock, perhaps after some good blocks.
        """
        return scan.flights(self._blocks, selection, height)

    def _counted(
        self,
        ask: Callable[[int | None], tuple[Counted, AsOf]],
        scanned: Callable[[int, int], Counted],
        options: Options,
    ) -> tuple[Counted, AsOf]:
        """What `_indexed` returns, and sooner close below the tip.

        The index has totals at its tip alone. So what the few blocks since then hold is taken away
        from these. scanned: takes the first and the last block to count.
        """
        height = options.as_of
        if height is not None and 0 < self._index.position().height - height <= NEAR_BLOCKS:
            found, tip = ask(None)
            if 0 < tip.height - height <= NEAR_BLOCKS:
                with suppress(Damage):  # of blocks, which the index alone does not need
                    later = scanned(height + 1, tip.height)
                    return found - later, AsOf(height, self.block_hash(height))
        return self._indexed(ask, options)

    def _indexed(
        self, ask: Callable[[int | None], tuple[Found, AsOf]], options: Options
    ) -> tuple[Found, AsOf]:
        """The answer of the index at its tip or as of an earlier height.

        ask: takes the first transaction id that does not count; None if all count.
        """
        if options.as_of is None:
            return ask(None)
        self.height()  # raises TryLater without a chain
        place = self._store.place(options.as_of)
        height = self._index.position().height
        if options.as_of > height:
            raise TryLater(f"the index has reached only block {height}; it is catching up")
        if options.as_of == height:
            found, as_of = ask(None)
            if as_of.height == height:
                return found, as_of
        found, _ = ask(place.next_transaction)
        return found, AsOf(options.as_of, place.hash.hex())

    def _scanned(self, options: Options) -> AsOf:
        """The block up to which a scan goes."""
        tip = self.height()
        height = tip if options.as_of is None else options.as_of
        return AsOf(height, self._store.place(height).hash.hex())

    # --- blocks and transactions -------------------------------------------------------------

    def has_block(self, height: int) -> bool:
        """Whether `CachedBlocks` has a block at hand, so that nothing waits for the disk."""
        return self._blocks.has(height)

    def has_transaction(self, transaction_id: int) -> bool:
        """Whether the block of a transaction is at hand; False if it is not mined."""
        return self._blocks.has_transaction(transaction_id)

    def block_hash(self, height: int) -> str:
        """The hash of a block from the table of heights, without reading it. Raises NotFound."""
        return self._blocks.where(height).hash

    def where_mined(self, transaction_id: int) -> Where | None:
        """Where the block of a transaction is, without reading it; None if it is not mined."""
        return self._blocks.where_transaction(transaction_id)

    def block(self, height: int, offset: int, limit: int) -> Json:
        """One block with up to `limit` of its transactions from row `offset` on."""
        block = self._blocks.block(height)
        return {**_header(block), "transactions": _rows(block, offset, limit)}

    def encoded_block(self, height: int, offset: int, limit: int) -> Encoded:
        """What `block` returns, as JSON and several times faster; it may be a moment old."""
        block = self._blocks.block_lately(height)
        header = msgspec.json.encode(block.header).removesuffix(b"}")
        rows = b",".join(_encoded_rows(block, offset, limit))
        more = b',"hash":"%b","transactions":[%b]}' % (block.hash.encode(), rows)
        return Encoded(block.hash, header + more)

    def blocks(self, before: int | None, limit: int, beginning: str | None = None) -> BlockList:
        """Headers with hashes: the `limit` blocks below `before` (None: the tip).

        beginning: only the blocks whose hash begins with these hex digits, however far below.
        """
        top = self._store.height() if before is None else min(before - 1, self._store.height())
        heights: Iterable[int] = range(top, max(-1, top - limit), -1)
        if beginning is not None:
            alike = self._store.heights_of_hash(beginning)
            heights = list(islice((height for height in alike if height <= top), limit))
        found = BlockList([], [], min(heights, default=0))
        for height in heights:
            try:
                found.headers.append(_header(self._blocks.block(height)))
            except Damage as error:
                found.damaged.append(self._damaged(height, error))
        return found

    def _damaged(self, height: int, error: Damage) -> Json:
        """What is known of a block that cannot be read."""
        known: Json = dict.fromkeys(_OF_PLACE)
        with suppress(Damage):  # of its entry in the table of heights
            place = self._store.place(height)
            values = (place.hash.hex(), place.first_transaction, place.transaction_count)
            known = dict(zip(_OF_PLACE, values, strict=True))
        return {"height": height, **known, "detail": str(error)}

    def transaction(self, transaction_id: int) -> Json:
        """A transaction, pending or mined. Raises NotFound."""
        where = self.where_mined(transaction_id)
        if where is not None:
            return self._mined_transaction(transaction_id, where)
        pending = self._mempool.find(transaction_id) if self._cluster is None else None
        if pending is None:
            where = self.where_mined(transaction_id)
            if where is not None:  # it has just been sealed
                return self._mined_transaction(transaction_id, where)
            raise NotFound(f"transaction {transaction_id} does not exist")
        flight, timestamp = pending
        transaction = _transaction(flight, transaction_id, timestamp)
        return {"state": "pending", "transaction": transaction, "block": None}

    def accepted_as(self, receipt: str) -> Json:
        """The transaction that a receipt of the cluster stands for, pending or mined.

        Raises NotFound.
        """
        if self._cluster is None:
            raise NotFound("this ledger belongs to no cluster; ask for /transactions/ID")
        own_number = self._cluster.own_number(receipt)
        pending = None if own_number is None else self._mempool.find(own_number)
        transaction_id = self._cluster.id_by(receipt)  # now, as it may just have been mined
        if transaction_id is not None:
            return self.transaction(transaction_id)
        if pending is None:
            raise NotFound(
                f"the flight of receipt {receipt} is in no block; while it is pending, only the "
                "node that accepted it knows it"
            )
        flight, timestamp = pending
        there = {"TRANSACTION_ID": None, "timestamp": timestamp, **as_mapping(flight)}
        return {"state": "pending", "transaction": there, "block": None}

    def _mined_transaction(self, transaction_id: int, where: Where) -> Json:
        block = self._blocks.block_lately(where.height)
        (row,) = _rows(block, transaction_id - block.header.first_transaction, 1)
        mined_in = {"height": where.height, "hash": block.hash}
        return {"state": "mined", "transaction": row, "block": mined_in}

    def encoded_transaction(self, transaction_id: int, where: Where) -> bytes:
        """A transaction that was found at `where`, as JSON. Raises NotFound or DamagedBlock."""
        block = self._blocks.block_lately(where.height)
        (row,) = _encoded_rows(block, transaction_id - block.header.first_transaction, 1)
        mined_in = b'{"height":%d,"hash":"%b"}' % (where.height, block.hash.encode())
        return b'{"state":"mined","transaction":%b,"block":%b}' % (row, mined_in)

    def transactions(self, first: int, count: int) -> list[Json]:
        """Up to `count` mined transactions from id `first` on."""
        found: list[Json] = []
        after = min(first + count, self.mined_count())
        while first + len(found) < after:
            block = self._blocks.block(self._store.height_of_transaction(first + len(found)))
            row = first + len(found) - block.header.first_transaction
            found += _rows(block, row, after - first - len(found))
        return found

    def tip(self) -> Json:
        """The newest block, how many transactions blocks hold, and how many are pending."""
        state = self.tip_state()
        block = self._blocks.block_lately(state["height"])
        header = block.header
        return {
            "height": state["height"],
            "hash": block.hash,
            "timestamp": header.timestamp,
            "transactions": header.first_transaction + header.transaction_count,
            "pending": state["pending"],
            "next_block_at": state["next_block_at"],
            **({"cluster": state["cluster"]} if "cluster" in state else {}),
        }

    def tip_state(self) -> Json:
        """The parts of `tip` that can change, without reading the block.

        The other parts follow from the hash.
        """
        height, pending = self._height_and_pending()
        return {
            "height": height,
            "hash": self.block_hash(height),
            "pending": pending,
            "next_block_at": next_block_at(self.settings.folder),
            **({} if self._cluster is None else {"cluster": self._cluster.told()}),
        }

    def _height_and_pending(self) -> tuple[int, int]:
        """The height and the pending count of one moment, so that each transaction counts once."""
        height = self.height()
        while True:
            pending = self._mempool.pending_count()
            if (now := self.height()) == height:
                return height, pending
            height = now

    def not_ready(self) -> list[str]:
        """The reasons why the service cannot do all its work now; empty if it can."""
        reasons: list[str] = []
        try:
            self._blocks.block(self.height())
        except Damage as error:
            reasons.append(f"{error}; {WHAT_TO_DO}")
        except TryLater as error:
            reasons.append(str(error))
        reasons += self._mempool.not_ready()
        if reason := why_no_miner(self.settings.folder):
            reasons.append(reason)
        if self._cluster is not None:
            reasons += self._cluster.not_ready()
        if doubt := self._clock.doubt():
            reasons.append(str(doubt))
        try:
            self._index.look()
            if lag := self.index_lag_blocks():
                reasons.append(f"blocks that the index lacks: {lag}")
        except TryLater as error:
            reasons.append(str(error))
        scrub = scrub_state.read(self.settings.folder, reasons.append) or ScrubState()
        told = {self._store.height(), *scrub_state.damaged_blocks(scrub)}
        return (
            reasons + scrub_state.reasons(scrub.problems) + damage_notes.reasons(self._notes, told)
        )

    def cluster_status(self) -> ClusterStatus:
        """How the cluster does. Raises NotFound without one, TryLater if its node does not run."""
        if self._cluster is None:
            raise NotFound("this ledger belongs to no cluster")
        return self._cluster.status()

    def damaged_blocks(self) -> list[int]:
        """The heights of the blocks that are known to be damaged. No block is read."""
        scrub = scrub_state.read(self.settings.folder) or ScrubState()
        return sorted({*scrub_state.damaged_blocks(scrub), *self._notes.known()})

    def cache_statistics(self) -> list[CacheStatistics]:
        """The counts of this process's two block caches and of its unpacked blocks."""
        return [*self._blocks.statistics(), self._blocks.unpacked_statistics()]

    def height(self) -> int:
        """The height of the tip. Raises TryLater without a chain."""
        height = self._store.height()
        if height < 0:
            raise TryLater(NO_CHAIN)
        return height

    def mined_count(self) -> int:
        """How many transactions blocks hold."""
        tip = self._store.tip()
        return 0 if tip is None else tip[1].next_transaction

    def pending_count(self) -> int:
        """How many transactions are pending. Raises DamagedMempool."""
        return self._mempool.pending_count()

    def oldest_pending_age_s(self) -> float:
        """How long the oldest pending transaction has waited; 0 without any."""
        oldest = self._mempool.oldest_pending_at()
        return 0.0 if oldest is None else max(0, now_ms() - oldest) / 1000

    def index_lag_blocks(self) -> int:
        """How many blocks the index is behind the tip. Raises TryLater without an index."""
        indexed = self._index.position().height
        return max(0, self._store.height() - indexed)

    def index_is_believed(self) -> bool:
        """Whether there is an index, and it is not known to be wrong."""
        try:
            self._index.look()
        except TryLater:
            return False
        return True

    def free_bytes(self) -> int:
        """How many bytes are free on the disk of the chain."""
        return free_bytes(self.settings.folder)

    def scrub(self) -> ScrubState:
        """How far the scrub is. Raises TryLater before one has begun."""
        found = scrub_state.read(self.settings.folder)
        if found is None:
            raise TryLater("the scrub has not checked anything yet")
        return found

    def scrub_completed_s(self) -> float:
        """When the last whole pass of the scrub ended, Unix seconds. Raises TryLater."""
        completed_at = self.scrub().completed_at
        if completed_at is None:
            raise TryLater("the scrub has not checked everything yet")
        return completed_at / 1000

    # --- accepting ---------------------------------------------------------------------------

    def add(
        self,
        flight: Flight,
        *,
        wait_s: float = 0,
        durable: bool = True,
        key: IdempotencyKey | None = None,
    ) -> Json:
        """Accept a flight; it is durable when this returns, unless `durable` is false.

        wait_s: how long to wait until it is mined and in the index. key: as in `Offer`. Raises
        TryLater if the mempool is full or the clock is doubted, KeyReused, WriteFailed,
        DamagedMempool.
        """
        offer = self.offer(flight, durable=durable, key=key)
        accepted = self._accept(offer)
        return self.receipt(offer, accepted, wait_s=wait_s, durable=durable)

    @staticmethod
    def offer(flight: Flight, *, durable: bool = True, key: IdempotencyKey | None = None) -> Offer:
        """Make the offer of a flight, for `accept_all`."""
        return Offer([flight], key, durable)

    def receipt(
        self, offer: Offer, accepted: Accepted, *, wait_s: float = 0, durable: bool = True
    ) -> Json:
        """What `add` returns for an offer of one flight that was accepted."""
        (flight,) = offer.flights
        (copy,) = self._others(accepted)
        number = accepted.first_transaction
        told = self._receipt(accepted, number, wait_s, durable)
        transaction_id = self._id_of(number)
        return {
            "TRANSACTION_ID": transaction_id,
            **told,
            "content_hash": self._content_hash(flight, transaction_id, told["timestamp"]),
            "duplicate_of": copy,
        }

    @staticmethod
    def _content_hash(flight: Flight, transaction_id: int | None, timestamp: int) -> str | None:
        """The leaf hash of a transaction; None as long as it has no id."""
        if transaction_id is None:
            return None
        return leaf_hash(transaction_bytes(transaction(flight, transaction_id, timestamp))).hex()

    def add_batch(
        self,
        flights: Sequence[Flight],
        *,
        wait_s: float = 0,
        durable: bool = True,
        key: IdempotencyKey | None = None,
    ) -> Json:
        """Accept flights (at least one), all or none, with consecutive ids.

        The rest is as in `add`, but a batch with a key is not searched for copies.
        """
        # A client that sends many with a key takes care itself of what it sends twice.
        offer = Offer(flights, key, durable, finds_copies=key is None)
        accepted = self._accept(offer)
        first = accepted.first_transaction
        last = first + len(flights) - 1
        duplicates = [
            {"TRANSACTION_ID": self._id_of(first + i), "duplicate_of": copy}
            for i, copy in enumerate(self._others(accepted))
            if copy is not None
        ]
        told = self._receipt(accepted, last, wait_s, durable)
        return {
            "accepted": len(flights),
            "first_transaction": self._id_of(first),
            "last_transaction": self._id_of(last),
            **told,
            "duplicates": len(duplicates),
            "duplicate_of": duplicates[:MOST_DUPLICATES_SHOWN],
        }

    def _accept(self, offer: Offer) -> Accepted:
        (outcome,) = self.accept_all([offer])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def accept_all(self, offers: Sequence[Offer]) -> list[Accepted | Refused]:
        """Accept or refuse each offer; they share one sync of the disk. Returns the outcomes.

        Where a flight equals a mined and a pending one, `copies` names the mined one. Raises
        TryLater while the clock is doubted, or while the cluster cannot mine.
        """
        if self._cluster is not None:
            self._cluster.require_acceptance()
        now = self._clock.now_ms()
        mined = [self._mined_copies_of(offer) for offer in offers]
        outcomes = self._mempool.accept_all(offers, now)
        if self._cluster is not None:
            outcomes = [self._told_in_cluster(outcome) for outcome in outcomes]
        for outcome, firsts in zip(outcomes, mined, strict=True):
            if isinstance(outcome, Accepted):
                for i, first in enumerate(firsts):
                    outcome.copies[i] = outcome.copies[i] if first is None else first
        return outcomes

    def _told_in_cluster(self, outcome: Accepted | Refused) -> Accepted | Refused:
        """The outcome without numbers of this node where ids belong: pending copies have none."""
        assert self._cluster is not None
        if isinstance(outcome, Accepted):
            outcome.copies[:] = [None] * len(outcome.copies)
        elif isinstance(outcome, KeyReused):
            first = outcome.first_transaction
            return KeyReused(outcome.key, first, self._cluster.address(first))
        return outcome

    def copies_of(self, flights: Sequence[Flight]) -> list[int | None]:
        """For each flight the id of an equal one that is in the ledger already, or None.

        Without an index only pending ones are found. Raises TryLater, DamagedMempool.
        """
        mined = self._mined_copies_of(Offer(flights)) or [None] * len(flights)
        if self._cluster is not None:  # what is pending has no ids
            return mined
        pending = self._mempool.copies_of(flights)
        pairs = zip(mined, pending, strict=True)
        return [other if one is None else one for one, other in pairs]

    def _mined_copies_of(self, offer: Offer) -> list[int | None]:
        if not offer.finds_copies:
            return []
        try:
            return self._index.first_ids(offer.flights)
        except TryLater:  # accepting does not need the index
            return []

    def _receipt(self, accepted: Accepted, last: int, wait_s: float, durable: bool) -> Json:
        may_be_mined = wait_s > 0 or accepted.is_repeat
        is_mined = may_be_mined and self._wait_until_mined(last, wait_s)
        told: Json = {
            "state": "mined" if is_mined else "pending",
            "timestamp": accepted.timestamp,
            "durable": durable or is_mined,
        }
        if self._cluster is not None:
            told["receipt"] = self._cluster.address(accepted.first_transaction)
        return told

    def _id_of(self, number: int) -> int | None:
        """The id of what this node accepted under a number; None while it has none."""
        return number if self._cluster is None else self._cluster.id_of(number)

    def _others(self, accepted: Accepted) -> list[int | None]:
        """The id of the first copy of each flight; None where that is the flight itself.

        A flight is its own first copy when a request is sent again with its key, because then the
        flights of the first request are found.
        """
        own = (self._id_of(accepted.first_transaction + i) for i in range(len(accepted.copies)))
        return [None if copy == i else copy for i, copy in zip(own, accepted.copies, strict=True)]

    def _wait_until_mined(self, number: int, wait_s: float) -> bool:
        deadline = time.monotonic() + wait_s
        while (mined := self._id_of(number)) is None or self._indexed_transactions() <= mined:
            if self._is_stopping or time.monotonic() >= deadline:
                return False
            time.sleep(COMMIT_POLL_S)
        time.sleep(RECENT_S)  # until every process answers with it
        return True

    def _indexed_transactions(self) -> int:
        try:
            return self._index.position().transactions
        except TryLater:  # without an index no answer can lack what is mined
            return self.mined_count()


def _context(question: Question, options: Options, as_of: AsOf) -> Json:
    return {
        "as_of": {"height": as_of.height, "tip_hash": as_of.tip_hash},
        "query": understood(question, options),
    }


def _grouped(groups: Mapping[Key, Json], count: str, answer: Json, options: Options) -> Json:
    """What `options.group_by` adds to an answer.

    groups: what is said about each group. count: the member that tells the number of flights.
    """
    if options.group_by is None:
        return {}
    shown, there_are = arranged(options.group_by, groups, count, options.shown)
    found: Json = {"groups": there_are}
    if options.group_by == "hour":
        with_hour = sum(one[count] for one in groups.values())
        found["without_hour"] = answer[count] - with_hour
    return {f"by_{options.group_by}": shown, **found}


def _averages(totals: DelayTotals) -> Json:
    return {
        "average_delay": _ratio(totals.sum_arr_delay, totals.arrived),
        "flights": totals.flights,
        "arrived": totals.arrived,
        "cancelled": totals.cancelled,
        "no_arrival": totals.flights - totals.cancelled - totals.arrived,
        "on_time_share_of_arrived": _ratio(totals.on_time, totals.arrived),
        "on_time_share_of_scheduled": _ratio(totals.on_time, totals.flights),
        "average_departure_delay": _ratio(totals.sum_dep_delay, totals.departed),
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _rows(block: Block, offset: int, limit: int) -> list[Json]:
    """Up to `limit` transactions of a block from row `offset` on."""
    header = block.header
    columns = decode_body(block.body, header.transaction_count)
    return columns.transactions(header.first_transaction, offset, offset + limit)


def _encoded_rows(block: Block, offset: int, limit: int) -> list[bytes]:
    """Up to `limit` transactions of a block from row `offset` on, each as JSON."""
    header, after = block.header, offset + limit
    return transactions_json(
        block.body, header.transaction_count, header.first_transaction, offset, after
    )


def _header(block: Block) -> Json:
    header = block.header
    return {**{name: getattr(header, name) for name in _HEADER_NAMES}, "hash": block.hash}


def _transaction(flight: Flight, transaction_id: int, timestamp: int) -> Mapping[str, Value]:
    return {"TRANSACTION_ID": transaction_id, "timestamp": timestamp, **as_mapping(flight)}
