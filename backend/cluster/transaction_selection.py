"""Decides which transactions a block of the cluster takes, and in which order its flights stand.

All nodes decide the same, because nothing counts but the transactions, the time in the block's
header and how many flights of each node were mined before. It is pure: no files, no clock.

A transaction fits if it goes on where its node's mined flights end, if the block has room for all
of it, and if no flight was accepted long after the header's time. That time is the median of what
the voters' clocks said, so a node whose clock is ahead cannot take the time of the ledger with it:
its flights wait until their time has come.

A block is proposed, and accepted as a proposal, only if no flight was accepted long before the
block below it: nobody can date a flight back to a time that the ledger has passed. A block that was
decided is not held against this, so that chains from before there was this rule are replayed.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from backend.chain.block import MAX_TRANSACTIONS
from backend.chain.flight import Flight
from backend.cluster.signed_transactions import ClusterTransaction, flights_in
from backend.storage.receipt_store import Run


@dataclass(frozen=True, slots=True)
class Rows:
    """The flights of a block in their order, with their acceptance times in UTC milliseconds.

    senders: for each flight the index of the node that accepted it. runs: one for each such node.
    """

    times: list[int]
    flights: list[Flight]
    senders: bytes
    runs: list[Run]


class Room:
    """The room in one block, which transactions take one after the other."""

    def __init__(self, mined: Sequence[int], times_ms: range) -> None:
        """mined: for each node how many of its flights are mined.

        times_ms: when a flight may have been accepted, UTC milliseconds.
        """
        self._next = list(mined)
        self._times_ms = times_ms
        self._left = MAX_TRANSACTIONS

    def takes(self, transaction: ClusterTransaction) -> bool:
        """Take a transaction if it fits. Returns whether it does."""
        fits = (
            transaction.first == self._next[transaction.node]
            and transaction.count <= self._left
            and transaction.earliest_ms in self._times_ms
            and transaction.latest_ms in self._times_ms
        )
        if fits:
            self._next[transaction.node] = transaction.following
            self._left -= transaction.count
        return fits


def proposed(
    candidates: Iterable[ClusterTransaction], mined: Sequence[int], times_ms: range, most_bytes: int
) -> list[ClusterTransaction]:
    """Return the transactions for a new block, those accepted first before others."""
    of_node: dict[int, list[ClusterTransaction]] = {}
    for transaction in candidates:
        of_node.setdefault(transaction.node, []).append(transaction)
    in_turn = [
        sorted(transactions, key=lambda transaction: transaction.first)
        for transactions in of_node.values()
    ]
    room, chosen = Room(mined, times_ms), []
    for transaction in heapq.merge(*in_turn, key=lambda transaction: transaction.first_ms):
        if len(transaction.data) <= most_bytes and room.takes(transaction):
            most_bytes -= len(transaction.data)
            chosen.append(transaction)
    return chosen


def rows_of(chosen: Sequence[ClusterTransaction]) -> Rows:
    """Return the flights of the transactions of a block, in the order of their acceptance.

    Those of one node stay in the order of their numbers, even if its clock was put back.
    """
    last: dict[int, int] = {}
    rows: list[tuple[int, int, int, Flight]] = []
    for transaction in chosen:
        times, flights = flights_in(transaction)
        for number, time, flight in zip(count(transaction.first), times, flights, strict=False):
            last[transaction.node] = max(time, last.get(transaction.node, 0))
            rows.append((last[transaction.node], transaction.node, number, flight))
    rows.sort(key=lambda row: row[:3])
    runs: dict[int, Run] = {}
    for transaction in chosen:
        first = runs.get(transaction.node, transaction).first
        runs[transaction.node] = Run(transaction.node, first, transaction.following)
    return Rows(
        [row[0] for row in rows],
        [row[3] for row in rows],
        bytes(row[1] for row in rows),
        list(runs.values()),
    )
