"""Recognises a flight that is posted again while the first one is pending."""

from collections.abc import Iterator, Sequence

from backend.chain.flight import Flight
from backend.chain.identity import departure_of, leg_of


class Duplicates:
    """Finds pending flights that may be the same as another (`chain.identity`), by hashes.

    It keeps hashes and not flights, because a hundred thousand may be pending: of each leg the
    first flight, and of further ones the first with each departure and each content. next: flights
    with ids below this one have been added.
    """

    def __init__(self) -> None:
        self.next = 0
        self._first_with: dict[int, int] = {}  # in the order of ids

    def add(self, first: int, flights: Sequence[Flight]) -> None:
        """Add pending flights, whose ids start at `first`."""
        for transaction_id, flight in enumerate(flights, first):
            for mark in _marks(flight):
                if self._first_with.setdefault(mark, transaction_id) == transaction_id:
                    break
        self.next = first + len(flights)

    def forget(self, mined: int) -> None:
        """Drop ids below `mined`."""
        if next(iter(self._first_with.values()), mined) < mined:
            self._first_with = {h: i for h, i in self._first_with.items() if i >= mined}

    def clear(self) -> None:
        """Drop all, because what was added last was not written after all."""
        self._first_with.clear()
        self.next = 0

    def candidates(self, flight: Flight) -> set[int]:
        """Return the ids of flights that are probably of the leg of `flight`."""
        return {self._first_with[mark] for mark in _marks(flight) if mark in self._first_with}


def _marks(flight: Flight) -> Iterator[int]:
    """Yield hashes of the leg, of leg and departure, and of the whole flight."""
    leg = leg_of(flight)
    yield hash(leg)
    yield hash((leg, departure_of(flight)))
    yield hash(flight)
