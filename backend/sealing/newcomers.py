"""Leaves out the flights of a source that the ledger has already."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress as selected

from backend.chain.fields import POSITION
from backend.chain.flight import Flight
from backend.chain.identity import Conflict, Stored, differences, leg_of, match
from backend.index.queries import IndexReader
from backend.sources.source import FlightColumns

SHOWN_CONFLICTS = 20

_DATE = POSITION["FL_DATE"]


@dataclass(slots=True)
class SourceComparison:
    """Says what a comparison of the flights of a source with the ledger has found.

    already_there: how many records say the same as a stored one. conflicts: how many contradict a
    stored one of the same flight. first_conflicts: what the first ones say.
    """

    already_there: int = 0
    conflicts: int = 0
    first_conflicts: list[str] = field(default_factory=list)

    def is_new(self, label: str, flight: Flight, records: Sequence[Stored]) -> bool:
        """Return whether a flight is in none of `records`, and count it if it is.

        label: that of its source. What is stored stays, so a record that contradicts it is left
        out, too.
        """
        stored = match(flight, records)
        if stored is not None:
            self.note(label, flight, stored)
        return stored is None

    def add(self, other: "SourceComparison") -> None:
        """Add what a comparison of further flights has found."""
        self.already_there += other.already_there
        self.conflicts += other.conflicts
        room = SHOWN_CONFLICTS - len(self.first_conflicts)
        self.first_conflicts += other.first_conflicts[:room]

    def note(self, label: str, flight: Flight, stored: Stored) -> None:
        """Count a flight that is left out, because there is a record of it. label: its source's."""
        if not differences(flight, stored.flight):
            self.already_there += 1
            return
        self.conflicts += 1
        if len(self.first_conflicts) < SHOWN_CONFLICTS:
            self.first_conflicts.append(f"{label}: {Conflict(flight, stored)}")


class Newcomers:
    """Tells new flights from those that the ledger held when this object was made.

    `chain.identity` says which flights are the same. comparison: what was found so far.
    """

    def __init__(self, reader: IndexReader, label: str, comparison: SourceComparison) -> None:
        """label: that of the source, for conflicts. comparison: is added to."""
        self._reader = reader
        self._label = label
        self._below = reader.position().transactions
        self._days = reader.days()
        self.comparison = comparison

    def among(self, columns: FlightColumns) -> FlightColumns:
        """Return the flights of `columns` that are new; this is quick on days that it lacks."""
        if self._days.isdisjoint(columns[_DATE]):
            return columns
        flights: list[Flight] = list(zip(*columns, strict=True))
        held = [flight for flight in flights if flight[_DATE] in self._days]
        records = self._reader.records_of(held, self._below)
        is_new = [
            self.comparison.is_new(self._label, flight, records.get(leg_of(flight), ()))
            for flight in flights
        ]
        return [list(selected(column, is_new)) for column in columns]
