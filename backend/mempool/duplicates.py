"""Recognises a flight that is posted again while the first one is pending."""

from collections.abc import Iterator, Sequence

from backend.chain.flight import Flight
from backend.chain.identity import Leg, departure_of, leg_of


class Duplicates:
    """Finds pending flights that may be the same as another (`chain.identity`), by hashes.

    It keeps hashes and not flights, because a hundred thousand may be pending: of each leg the
    newest flight, and if there are several, the oldest, and the first with each departure and each
    content. next: flights with ids below this one have been added.
    """

    def __init__(self) -> None:
        self.next = 0
        self._oldest = 0  # of the ids that are kept
        self._id_with: dict[int, int] = {}

    def add(self, first: int, flights: Sequence[Flight]) -> None:
        """Add pending flights, whose ids start at `first`."""
        if not self._id_with:
            self._oldest = first
        for transaction_id, flight in enumerate(flights, first):
            leg = leg_of(flight)
            mark = hash(leg)
            newest = self._id_with.get(mark)
            self._id_with[mark] = transaction_id
            if newest is not None:
                oldest_mark, *marks = _further_marks(leg, flight)
                self._id_with.setdefault(oldest_mark, newest)
                for mark in marks:
                    self._id_with.setdefault(mark, transaction_id)
        self.next = first + len(flights)

    def forget(self, mined: int) -> None:
        """Drop ids below `mined`."""
        if self._oldest < mined:
            self._id_with = {h: i for h, i in self._id_with.items() if i >= mined}
            self._oldest = mined

    def clear(self) -> None:
        """Drop all, because what was added last was not written after all."""
        self._id_with.clear()
        self.next = 0

    def candidates(self, flight: Flight) -> Sequence[int]:
        """Return the ids of flights that are probably of the leg of `flight`, oldest first."""
        leg = leg_of(flight)
        newest = self._id_with.get(hash(leg))
        if newest is None:
            return ()
        marks = _further_marks(leg, flight)
        return sorted({newest, *(self._id_with.get(mark, newest) for mark in marks)})


def _further_marks(leg: Leg, flight: Flight) -> Iterator[int]:
    """Yield hashes for the oldest of a leg, for leg and departure, and for the whole flight."""
    yield hash((leg,))
    yield hash((leg, departure_of(flight)))
    yield hash(flight)
