"""Sends what this node has accepted to the cluster, again and again until it is mined.

The mempool is the outbox: it numbers what is accepted, and all of it below the number of mined
flights is done. So nothing needs to be noted, and a crash at any moment loses nothing. Sending a
flight twice does no harm, because a number is mined once (`transaction_selection`).

Flights are sent every interval, or at once when enough are pending for a full block, as a single
node mines. Intervals begin at multiples of themselves by the clock, so that all nodes send at the
same time. A flight is on this node's disk before it is sent: if its number were lost by a power cut
and given to another flight, that one would be taken for mined.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from backend.base.errors import TryLater
from backend.chain.block import MAX_TRANSACTIONS
from backend.cluster.membership import LEEWAY_MS
from backend.cluster.signed_transactions import MOST_FLIGHTS
from backend.mempool import Accepted, Mempool

IN_FLIGHT = 4 * MAX_TRANSACTIONS  # that were sent and are not mined
AGAIN_S = 5.0  # after so long without progress all is sent again

Send = Callable[[Sequence[Accepted]], None]


class Outbox:
    """The pending flights of `mempool`. It is for one thread; others may read the properties."""

    def __init__(
        self,
        mempool: Mempool,
        mined: Callable[[], int],
        send: Send,
        interval_s: float,
        *,
        wall_s: Callable[[], float] = time.time,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """mined: how many flights of this node are in blocks. send: sends a transaction's flights.

        `send` raises TryLater if it cannot be done now. wall_s, monotonic_s: read the clocks.
        """
        self._mempool = mempool
        self._mined_now = mined
        self._send = send
        self._interval_s = interval_s
        self._wall_s, self._monotonic_s = wall_s, monotonic_s
        self._mined = mined()
        self._sent = 0  # numbers below have been sent
        self._released = 0  # numbers below may be sent
        self._moved_s = monotonic_s()  # when something was mined, or sent while nothing was
        self.due_s = 0.0  # when all that is pending is sent, monotonic seconds
        self._set_due()

    def _set_due(self) -> None:
        into_s = self._wall_s() % self._interval_s
        self.due_s = self._monotonic_s() + self._interval_s - into_s

    def waits_s(self) -> float:
        """Return for how long flights were sent and none was mined; 0 if none are on the way."""
        return self._monotonic_s() - self._moved_s if self._sent > self._mined else 0.0

    def step(self) -> None:
        """Send what is due. Raises TryLater, DamagedMempool or WriteFailed."""
        self._take_note(self._mined_now())
        self._release()
        until = min(self._released, self._mined + IN_FLIGHT)
        if self._sent < until:
            self._send_until(until)

    def _take_note(self, mined: int) -> None:
        now_s = self._monotonic_s()
        if mined > self._mined or self._sent <= self._mined:
            self._moved_s = self._again_s = now_s
        elif now_s - self._again_s > AGAIN_S:
            self._sent, self._again_s = mined, now_s
        self._mined = mined
        self._sent = max(self._sent, mined)

    def _release(self) -> None:
        """Let out all that is pending if it is due, else what fills blocks."""
        end = self._mempool.pending_ids().stop
        start = max(self._released, self._mined)
        self._released = start + max(0, end - start) // MAX_TRANSACTIONS * MAX_TRANSACTIONS
        if self._monotonic_s() >= self.due_s:
            self._released = max(start, end)
            self._set_due()

    def _send_until(self, until: int) -> None:
        accepted = self._mempool.pending(until - self._sent, self._sent)
        self._mempool.sync()
        for parts in in_transactions(accepted):
            if parts[0].first_transaction != self._sent:
                raise TryLater(f"flight {self._sent} of this node cannot be found")
            self._send(parts)
            self._sent += sum(len(part.flights) for part in parts)


def with_believable_time(
    part: Accepted, earliest_ms: int, newest_ms: int, leeway_ms: int
) -> Accepted:
    """Return a part with another time if no node would propose it, or not yet, with its own.

    earliest_ms: if it was accepted before, the node was cut off or about to stop, and newer flights
    of others are in blocks. The new time leaves room for blocks that are decided before it is.
    newest_ms: the newest time that is known. If it was accepted more than `leeway_ms` after that,
    the clock was ahead then, and has been set.
    """
    if part.timestamp < earliest_ms:
        return replace(part, timestamp=earliest_ms + LEEWAY_MS // 2)
    if part.timestamp > newest_ms + leeway_ms:
        return replace(part, timestamp=newest_ms)
    return part


def in_transactions(accepted: Sequence[Accepted]) -> Iterator[list[Accepted]]:
    """Split accepted flights into the parts of transactions, of `MOST_FLIGHTS` at most."""
    parts: list[Accepted] = []
    room = MOST_FLIGHTS
    for flight in accepted:
        at = 0
        while at < len(flight.flights):
            taken = flight.flights[at : at + room]
            parts.append(Accepted(flight.first_transaction + at, flight.timestamp, taken))
            at += len(taken)
            room -= len(taken)
            if not room:
                yield parts
                parts, room = [], MOST_FLIGHTS
    if parts:
        yield parts
