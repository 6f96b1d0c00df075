"""Recognising a flight that comes again while the first one is pending."""

from collections.abc import Sequence

from backend.chain.flight import Flight


class Copies:
    """Where pending flights stand, by their hash, to recognise one that comes again.

    Hashes and not flights: a hundred thousand may be pending. next: the id up to which they have
    been taken in.
    """

    def __init__(self) -> None:
        self.next = 0
        self._first_with: dict[int, int] = {}  # in the order of ids

    def add(self, first: int, flights: Sequence[Flight]) -> None:
        """Take in pending flights; their ids start at `first`."""
        for transaction_id, flight in enumerate(flights, first):
            self._first_with.setdefault(hash(flight), transaction_id)
        self.next = first + len(flights)

    def forget(self, mined: int) -> None:
        """Drop ids below `mined`."""
        if next(iter(self._first_with.values()), mined) < mined:
            self._first_with = {h: i for h, i in self._first_with.items() if i >= mined}

    def candidate(self, flight: Flight) -> int | None:
        """The id of the flight that, to all appearances, equals `flight`."""
        return self._first_with.get(hash(flight))
