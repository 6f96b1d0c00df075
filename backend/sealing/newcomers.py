"""Leaves out the flights of a source that the ledger has already."""

from collections.abc import Sequence
from itertools import compress as selected

from backend.chain.fields import POSITION
from backend.chain.flight import Flight
from backend.chain.identity import Stored, differences, leg_of, match
from backend.index.queries import IndexReader
from backend.sources.source import FlightColumns

_DATE = POSITION["FL_DATE"]


class Newcomers:
    """Tells new flights from those that the ledger held when this object was made.

    `chain.identity` says which flights are the same. already_there: how many records said the same
    as a stored one.
    """

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        self._below = reader.position().transactions
        self._days = reader.days()
        self.already_there = 0

    def among(self, columns: FlightColumns) -> FlightColumns:
        """Return the flights of `columns` that are new; this is quick on days that it lacks."""
        if self._days.isdisjoint(columns[_DATE]):
            return columns
        flights: list[Flight] = list(zip(*columns, strict=True))
        held = [flight for flight in flights if flight[_DATE] in self._days]
        records = self._reader.records_of(held, self._below)
        is_new = [self._is_new(flight, records.get(leg_of(flight), ())) for flight in flights]
        self.already_there += is_new.count(False)
        return [list(selected(column, is_new)) for column in columns]

    @staticmethod
    def _is_new(flight: Flight, records: Sequence[Stored]) -> bool:
        stored = match(flight, records)
        return stored is None or bool(differences(stored.flight, flight))
