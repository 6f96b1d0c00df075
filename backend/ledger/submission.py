"""Accepts flights into the mempool, and tells when they are mined.

In a cluster the mempool's ids are numbers of this node, and flights get ids of the ledger when they
are mined (`cluster.view`).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from backend.base.errors import KeyReused, TryLater
from backend.chain.flight import Flight
from backend.chain.identity import Stored, differences, leg_of, match
from backend.chain.merkle import leaf_hash
from backend.chain.transaction import transaction, transaction_bytes
from backend.cluster.view import ClusterView
from backend.index.queries import RECENT_S, IndexReader
from backend.mempool import Accepted, Mempool, Offer, Refused
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.sealing.trusted_clock import TrustedClock

Json = dict[str, Any]

COMMIT_POLL_S = 0.02
MOST_DUPLICATES_SHOWN = 100


class Submitter:
    """Accepts flights, and waits for blocks."""

    def __init__(
        self,
        mempool: Mempool,
        index: IndexReader,
        clock: TrustedClock,
        cluster: ClusterView | None,
        mined_count: Callable[[], int],
    ) -> None:
        """cluster: that to which the ledger belongs. mined_count: of all transactions in blocks."""
        self._mempool = mempool
        self._index = index
        self._clock = clock
        self._cluster = cluster
        self._mined_count = mined_count
        self._is_stopping = False

    def stop_waiting(self) -> None:
        """Answer all requests that wait for a block, within `COMMIT_POLL_S`, before the end.

        Signal handlers may call this. They may run while their own thread holds a lock, for
        instance that of an Event, so no lock is taken here.
        """
        self._is_stopping = True

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
        """Return what `add` returns for an offer of one flight that was accepted."""
        (flight,) = offer.flights
        (copy,) = self._others(accepted)
        number = accepted.first_transaction
        members = self._receipt(accepted, number, wait_s, durable)
        transaction_id = self._id_of(number)
        return {
            "TRANSACTION_ID": transaction_id,
            **members,
            "content_hash": self._content_hash(flight, transaction_id, members["timestamp"]),
            "duplicate_of": copy,
        }

    @staticmethod
    def _content_hash(flight: Flight, transaction_id: int | None, timestamp: int) -> str | None:
        """Return the leaf hash of a transaction; None as long as it has no id."""
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
        members = self._receipt(accepted, last, wait_s, durable)
        return {
            "accepted": len(flights),
            "first_transaction": self._id_of(first),
            "last_transaction": self._id_of(last),
            **members,
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
            outcomes = [self._with_cluster_ids(outcome) for outcome in outcomes]
        for outcome, firsts in zip(outcomes, mined, strict=True):
            if isinstance(outcome, Accepted):
                for i, first in enumerate(firsts):
                    outcome.copies[i] = outcome.copies[i] if first is None else first
        return outcomes

    def _with_cluster_ids(self, outcome: Accepted | Refused) -> Accepted | Refused:
        """Return the outcome without numbers of this node as ids: pending copies have none."""
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
        return [other if copy is None else copy for copy, other in pairs]

    def _mined_copies_of(self, offer: Offer) -> list[int | None]:
        if not offer.finds_copies:
            return []
        try:
            records = self._index.records_of(offer.flights)
        except TryLater:  # accepting does not need the index
            return []
        return [_copy_among(records.get(leg_of(flight), ()), flight) for flight in offer.flights]

    def _receipt(self, accepted: Accepted, last: int, wait_s: float, durable: bool) -> Json:
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

    def _others(self, accepted: Accepted) -> list[int | None]:
        """Return the id of the first copy of each flight; None where that is the flight itself.

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
            return self._mined_count()


def _copy_among(records: Sequence[Stored], flight: Flight) -> int | None:
    """Return the id of the record that says the same as `flight`, or None."""
    stored = match(flight, records)
    is_copy = stored is not None and not differences(stored.flight, flight)
    return stored.transaction_id if stored is not None and is_copy else None
