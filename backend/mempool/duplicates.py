"""Recognises a flight that is posted again while the first one is pending."""

from collections.abc import Sequence

from backend.chain.flight import Flight


class Duplicates:
    """Finds the id of a pending flight by the flight's hash.

    It keeps hashes and not flights, because a hundred thousand may be pending. next: flights with
    ids below this one have been added.
    """

    def __init__(self) -> None:
        self.next = 0
        self._first_with: dict[int, int] = {}  # in the order of ids

    def add(self, first: int, flights: Sequence[Flight]) -> None:
        """Add pending flights, whose ids start at `first`."""
        for transaction_id, flight in enumerate(flights, first):
            self._first_with.setdefault(hash(flight), transaction_id)
        self.next = first + len(flights)

    def forget(self, mined: int) -> None:
        """Drop ids below `mined`."""
        if next(iter(self._first_with.values()), mined) < mined:
            self._first_with = {h: i for h, i in self._first_with.items() if i >= mined}

    def clear(self) -> None:
        """Drop all, because what was added last was not written after all."""
        self._first_with.clear()
        self.next = 0

    def candidate(self, flight: Flight) -> int | None:
        """Return the id of the first flight with the hash of `flight`, which probably equals it."""
        return self._first_with.get(hash(flight))
