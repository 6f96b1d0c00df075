"""Remembers the flights that are posted while an import stores its own: none may count twice.

What an import stores was compared with the ledger before its first block. Flights that are posted
after that get their ids between two of its batches, and are sealed before the next one: then they
are there, and the import leaves them out.
"""

from collections.abc import Sequence
from itertools import compress

from backend.base.errors import TryLater
from backend.base.words import counted
from backend.chain.block import Block
from backend.chain.columns import Columns, columns_from, decode_body
from backend.chain.fields import FIELD_NAMES
from backend.chain.identity import Leg, Stored, leg_of
from backend.sealing.newcomers import SourceComparison

MOST_REMEMBERED = 250_000  # flights, in about a kilobyte each


class PostedMeanwhile:
    """The flights that were posted since an import began to store its own."""

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
                "more than it can compare with; the sealed blocks stay, so run the import again"
            )

    def without(self, columns: Columns, label: str, comparison: SourceComparison) -> Columns:
        """Return the content of a block without the flights that were posted, if it has any.

        label: that of their source. comparison: counts what is left out.
        """
        if self._days.isdisjoint(columns["FL_DATE"].values):
            return columns
        are_new = [
            comparison.is_new(label, flight, self._by_leg.get(leg_of(flight), ()))
            for flight in columns.rows()
        ]
        if all(are_new):
            return columns
        kept = [list(compress(c.expanded(), are_new)) for c in columns.by_name.values()]
        return columns_from(kept)
