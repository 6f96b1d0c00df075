"""Leaves out the flights of a source that the ledger has already, or gets during the import."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress

from backend.base.errors import TryLater
from backend.base.words import counted
from backend.chain.block import Block
from backend.chain.columns import Columns, columns_from, decode_body
from backend.chain.fields import FIELD_NAMES, POSITION
from backend.chain.flight import Flight
from backend.chain.identity import Conflict, Leg, Stored, differences, leg_of, match
from backend.index.queries import IndexReader
from backend.sources.source import FlightColumns

SHOWN_CONFLICTS = 100
MOST_REMEMBERED = 250_000  # flights posted meanwhile, in about a kilobyte each

_DATE = POSITION["FL_DATE"]


@dataclass(slots=True)
class SourceComparison:
    """Says what a comparison of the flights of a source with the ledger has found.

    already_there: how many records say the same as a stored one. first_there: the id of the first
    of these; None if no record is in a block. conflicts: how many contradict a stored one of the
    same flight. first_conflicts: the first of these.
    """

    already_there: int = 0
    first_there: int | None = None
    conflicts: int = 0
    first_conflicts: list[Conflict] = field(default_factory=list)

    def is_new(self, flight: Flight, records: Sequence[Stored]) -> bool:
        """Return whether a flight is in none of `records`, and count it if it is.

        What is stored stays, so a record that contradicts it is left out, too.
        """
        stored = match(flight, records)
        if stored is not None:
            self.note(flight, stored)
        return stored is None

    def add(self, other: "SourceComparison") -> None:
        self.already_there += other.already_there
        if self.first_there is None:
            self.first_there = other.first_there
        self.conflicts += other.conflicts
        room = SHOWN_CONFLICTS - len(self.first_conflicts)
        self.first_conflicts += other.first_conflicts[:room]

    def note(self, flight: Flight, stored: Stored) -> None:
        """Count a flight that is left out, because there is a record of it."""
        if not differences(flight, stored.flight):
            self.already_there += 1
            if self.first_there is None:
                self.first_there = stored.transaction_id
            return
        self.conflicts += 1
        if len(self.first_conflicts) < SHOWN_CONFLICTS:
            self.first_conflicts.append(Conflict(flight, stored))


class Newcomers:
    """Tells new flights from those that the ledger held when this object was made.

    `chain.identity` says which flights are the same. comparison: what was found so far.
    """

    def __init__(self, reader: IndexReader, comparison: SourceComparison) -> None:
        """comparison: is added to."""
        self._reader = reader
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
            self.comparison.is_new(flight, records.get(leg_of(flight), ())) for flight in flights
        ]
        return [list(compress(column, is_new)) for column in columns]


class PostedMeanwhile:
    """The flights that were posted since an import began to store its own: none may count twice.

    What an import stores was compared with the ledger before its first block. Flights that are
    posted after that get their ids between two of its batches, and are sealed before the next one:
    then they are there, and the import leaves them out.
    """

    def __init__(self) -> None:
        self._by_leg: dict[Leg, list[Stored]] = {}
        self._days: set[object] = set()
        self._count = 0

    def add(self, blocks: Sequence[Block]) -> None:
        """Remember the flights in blocks that were just sealed.

        Raises TryLater if they are too many: only another import can compare with so many.
        """
        for block in blocks:
            first = block.header.first_transaction
            columns = decode_body(block.body, block.header.transaction_count, FIELD_NAMES)
            for transaction_id, flight in enumerate(columns.rows(), first):
                record = Stored(transaction_id, block.header.height, flight)
                self._by_leg.setdefault(leg_of(flight), []).append(record)
            self._days.update(columns["FL_DATE"].values)
            self._count += columns.count
        if self._count > MOST_REMEMBERED:
            raise TryLater(
                f"{counted(self._count, 'flight was', 'flights were')} posted during the import, "
                "too many to compare with; run the import again to continue after the sealed "
                "blocks"
            )

    def without(self, columns: Columns, comparison: SourceComparison) -> Columns:
        """Return the content of a block without the flights that were posted, if it has any.

        comparison: counts what is left out.
        """
        if self._days.isdisjoint(columns["FL_DATE"].values):
            return columns
        are_new = [
            comparison.is_new(flight, self._by_leg.get(leg_of(flight), ()))
            for flight in columns.rows()
        ]
        if all(are_new):
            return columns
        kept = [list(compress(c.expanded(), are_new)) for c in columns.by_name.values()]
        return columns_from(kept)
