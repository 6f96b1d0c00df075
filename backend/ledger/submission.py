"""Accepts flights into the mempool, and tells when they are mined.

In a cluster the mempool's ids are numbers of this node, and flights get ids of the ledger when they
are mined (`cluster.view`).
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from backend.base.errors import KeyReused, TryLater
from backend.chain.flight import Flight
from backend.chain.identity import Conflict, Stored, all_matches, differences, match
from backend.chain.json_objects import Json
from backend.chain.merkle import leaf_hash
from backend.chain.transaction import transaction, transaction_bytes
from backend.cluster.view import ClusterView
from backend.index.queries import IndexReader
from backend.ledger.known_flights import MOST_SHOWN, Comparison, RecordsInBlocks
from backend.mempool import Accepted, Mempool, Offer, Refused, StaleComparison
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.sealing.trusted_clock import TrustedClock
from backend.storage.caches import RECENT_S

COMMIT_POLL_S = 0.02
COMPARE_PATIENCE_S = 5.0  # for blocks that are sealed faster than flights are compared


class Submitter:
    """Accepts flights, and waits for blocks."""

    def __init__(
        self,
        mempool: Mempool,
        index: IndexReader,
        in_blocks: RecordsInBlocks,
        clock: TrustedClock,
        cluster: ClusterView | None,
        mined_count: Callable[[], int],
    ) -> None:
        """cluster: the one that the ledger belongs to.

        mined_count: returns the number of transactions in blocks.
        """
        self._mempool = mempool
        self._index = index
        self._records_in_blocks = in_blocks
        self._clock = clock
        self._cluster = cluster
        self._mined_count = mined_count
        self._known_everywhere = 0  # every process answers with flights whose ids are below this
        self._is_stopping = False

    def stop_waiting(self) -> None:
        """Answer all requests that wait for a block, within `COMMIT_POLL_S`, before the end.

        Signal handlers may call this. They may run while their own thread holds a lock, for
        instance that of an Event, so no lock is taken here.
        """
        self._is_stopping = True

    def receipt(
        self, offer: Offer, accepted: Accepted, *, wait_s: float = 0, durable: bool = True
    ) -> Json:
        """Return what an answer says of an offer of one flight that was accepted.

        wait_s: how long to wait until it is mined and in the index.
        """
        (flight,) = offer.flights
        members = self._outcome(accepted, wait_s, durable)
        transaction_id, content_hash = self._id_of(accepted.first_transaction), None
        if transaction_id is not None:
            mined = transaction(flight, transaction_id, members["timestamp"])
            content_hash = leaf_hash(transaction_bytes(mined)).hex()
        comparison = self._compared_with([flight], self._earlier_records(accepted))
        return {
            "TRANSACTION_ID": transaction_id,
            **members,
            "content_hash": content_hash,
            **comparison.members_of_one(),
        }

    def add_batch(
        self,
        flights: Sequence[Flight],
        *,
        wait_s: float = 0,
        durable: bool = True,
        key: IdempotencyKey | None = None,
        skips: bool = False,
    ) -> Json:
        """Accept flights (at least one), all or none, with consecutive ids.

        They are durable when this returns, unless `durable` is false. skips: accept only flights of
        which the ledger has no record, and raise TryLater as well while that cannot be known. The
        rest is as in `receipt` and `Offer`. Raises TryLater if the mempool is full or the clock is
        doubted, KeyReused, WriteFailed, DamagedMempool.
        """
        offer = Offer(flights, key, durable)
        accepted = self._accept_new(offer) if skips else self.accept(offer)
        records = self._earlier_records(accepted, with_own=skips)
        comparison = self._compared_with(flights, records)
        there = len(flights) - accepted.count - len(comparison.conflicts) if skips else 0
        known = {"already_there": there, **comparison.conflict_members()}
        if not accepted.count:
            return {"accepted": 0, "duplicates": 0, "duplicate_of": [], **known}
        first = accepted.first_transaction
        duplicates = [
            {"TRANSACTION_ID": self._id_of(first + place), "duplicate_of": copy.transaction_id}
            for place, copy in comparison.copies.items()
            if copy.transaction_id is not None and not skips
        ]
        return {
            "accepted": accepted.count,
            "first_transaction": self._id_of(first),
            "last_transaction": self._id_of(first + accepted.count - 1),
            **self._outcome(accepted, wait_s, durable),
            "duplicates": len(duplicates),
            "duplicate_of": duplicates[:MOST_SHOWN],
            **known,
        }

    def try_batch(self, flights: Sequence[Flight], *, skips: bool = False) -> Json:
        """Return what `add_batch` would do, as far as it is known before."""
        comparison = self.compared(flights, skips=skips)
        ids = [copy.transaction_id for copy in comparison.copies.values()]
        there = [transaction_id for transaction_id in ids if transaction_id is not None]
        known = len(comparison.copies) if skips else 0
        return {
            "accepted": len(flights) - known - (len(comparison.conflicts) if skips else 0),
            "duplicates": len(there),
            "duplicate_of": there[:MOST_SHOWN],
            "already_there": known,
            **comparison.conflict_members(),
        }

    def _accept_new(self, offer: Offer) -> Accepted:
        """Accept the flights of an offer of which the ledger has no record.

        They are compared with blocks before the mempool's lock is taken, and with the newer ones if
        it turns out under the lock that some were sealed meanwhile.
        """
        deadline = time.monotonic() + COMPARE_PATIENCE_S
        known = None
        while True:
            seen = self._mempool.chain_transactions()
            known = self._records_in_blocks.up_to_tip(offer.flights, known)
            in_blocks = known.of_each(offer.flights)
            try:
                accepted = self.accept(offer._replace(in_blocks=in_blocks, seen=seen))
            except StaleComparison:
                if time.monotonic() >= deadline:
                    raise
            else:
                return self._with_own_flights(accepted) if accepted.is_repeat else accepted

    def _with_own_flights(self, accepted: Accepted) -> Accepted:
        """Return what was accepted under a key before, with these flights alone."""
        own = [
            flight
            for flight, records in zip(accepted.flights, accepted.records, strict=True)
            if any(self._is_own(record, accepted) and record.flight == flight for record in records)
        ]
        return replace(accepted, flights=own or accepted.flights)

    def accept(self, offer: Offer) -> Accepted:
        """Accept one offer, as `accept_all` does; an outcome that is an error is raised."""
        (outcome,) = self.accept_all([offer])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def accept_all(self, offers: Sequence[Offer]) -> list[Accepted | Refused]:
        """Accept or refuse each offer; they share one sync of the disk. Returns the outcomes.

        Their `records` are those in blocks, then pending ones; the mempool has put together both
        for an offer that came with those in blocks, but not for one that was accepted before.
        Raises TryLater while the clock is doubted, or while the cluster cannot mine.
        """
        if self._cluster is not None:
            self._cluster.require_acceptance()
        now = self._clock.now_ms()
        in_blocks = [self._in_blocks(offer) for offer in offers]
        outcomes = self._mempool.accept_all(offers, now)
        for offer, outcome, mined in zip(offers, outcomes, in_blocks, strict=True):
            if not isinstance(outcome, Accepted) or not any(mined):
                continue
            if offer.in_blocks is None or outcome.is_repeat:
                pairs = zip(mined, outcome.records, strict=True)
                outcome.records[:] = [[*blocks, *pending] for blocks, pending in pairs]
        if self._cluster is not None:
            outcomes = [self._with_address(outcome) for outcome in outcomes]
        return outcomes

    def _with_address(self, outcome: Accepted | Refused) -> Accepted | Refused:
        assert self._cluster is not None
        if isinstance(outcome, KeyReused):
            first = outcome.first_transaction
            return KeyReused(outcome.key, first, self._cluster.address(first))
        return outcome

    def compared(self, flights: Sequence[Flight], *, skips: bool = False) -> Comparison:
        """Compare flights with what the ledger has already.

        skips: as in `add_batch`: compare them with those before them among `flights`, too, and
        raise TryLater without an index. Otherwise only pending ones are found then. Raises
        DamagedMempool, DamagedBlock.
        """
        pending = self._mempool.records_of(flights)  # first, because they go to blocks
        in_blocks: Sequence[Sequence[Stored]] = [()] * len(flights)
        with suppress(*() if skips else (TryLater,)):
            in_blocks = self._records_in_blocks.up_to_tip(flights).of_each(flights)
        pairs = zip(in_blocks, pending, strict=True)
        known: Sequence[Sequence[Stored]] = [[*mined, *pending] for mined, pending in pairs]
        if skips:
            known = [[record] if record else [] for record in all_matches(flights, known)]
        return self._compared_with(flights, known)

    def _compared_with(
        self, flights: Sequence[Flight], records: Sequence[Sequence[Stored]]
    ) -> Comparison:
        """Compare each flight with the record of it, if there is one among those of its leg."""
        comparison = Comparison({}, [])
        for place, (flight, of_leg) in enumerate(zip(flights, records, strict=True)):
            record = match(flight, of_leg) if of_leg else None
            if record is None:
                continue
            if differences(flight, record.flight):
                comparison.conflicts.append(Conflict(flight, self._shown(record)))
            else:
                comparison.copies[place] = self._shown(record)
        return comparison

    def _in_blocks(self, offer: Offer) -> Sequence[Sequence[Stored]]:
        if offer.in_blocks is not None:
            return offer.in_blocks
        with suppress(TryLater):  # accepting does not need the index
            return self._records_in_blocks.indexed(offer.flights)
        return [()] * len(offer.flights)

    def _outcome(self, accepted: Accepted, wait_s: float, durable: bool) -> Json:
        last = accepted.first_transaction + accepted.count - 1
        may_be_mined = wait_s > 0 or accepted.is_repeat
        is_mined = may_be_mined and self._wait_until_mined(last, wait_s)
        members: Json = {
            "state": "mined" if is_mined else "pending",
            "timestamp": accepted.timestamp,
            "durable": durable or is_mined,
        }
        if self._cluster is not None:
            first, flights = accepted.first_transaction, accepted.flights
            members["receipt"] = self._cluster.address(first, flights[0])
            if last > first:
                members["last_receipt"] = self._cluster.address(last, flights[-1])
        return members

    def _id_of(self, number: int) -> int | None:
        """Return the id of what this node accepted under a number; None while it has none."""
        return number if self._cluster is None else self._cluster.id_of(number)

    def _earlier_records(self, accepted: Accepted, *, with_own: bool = False) -> list[list[Stored]]:
        """Return what there was of each flight's leg before the flights were accepted.

        If a request is sent again with its key, there are now also these flights, and perhaps newer
        ones. with_own: whether these flights count, too.
        """
        if not accepted.is_repeat:
            return accepted.records
        return [
            [
                record
                for record in records
                if self._is_older(record, accepted) or (with_own and self._is_own(record, accepted))
            ]
            for records in accepted.records
        ]

    def _is_older(self, record: Stored, accepted: Accepted) -> bool:
        """Return whether a record is older than what was accepted under a key before."""
        if record.transaction_id is None:
            return False
        number = accepted.first_transaction
        first = number if record.height is None else self._id_of(number)
        return first is None or record.transaction_id < first  # None: it is in no block yet

    def _is_own(self, record: Stored, accepted: Accepted) -> bool:
        """Return whether a record is of what was accepted under a key before."""
        if record.transaction_id is None:
            return False
        numbers = accepted.first_transaction, accepted.first_transaction + accepted.count - 1
        first, last = numbers if record.height is None else map(self._id_of, numbers)
        return first is not None and last is not None and first <= record.transaction_id <= last

    def _shown(self, record: Stored) -> Stored:
        """Return a record as an answer may show it: pending ones have no id in a cluster."""
        if record.height is not None or self._cluster is None:
            return record
        return record._replace(transaction_id=None)

    def _wait_until_mined(self, number: int, wait_s: float) -> bool:
        """Wait until every process answers with a flight. Returns whether they do."""
        deadline = time.monotonic() + wait_s
        while (mined := self._id_of(number)) is None or self._indexed_transactions() <= mined:
            if self._is_stopping or time.monotonic() >= deadline:
                return False
            time.sleep(COMMIT_POLL_S)
        if mined >= self._known_everywhere:  # else flights that are sent again would wait in turn
            indexed = self._indexed_transactions()
            time.sleep(RECENT_S)
            self._known_everywhere = indexed
        return True

    def _indexed_transactions(self) -> int:
        try:
            return self._index.position().transactions
        except TryLater:  # without an index no answer can lack what is mined
            return self._mined_count()
