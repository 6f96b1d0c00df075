"""Finds the records that the ledger has of flights that are sent, and says what it has of them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from backend.base.errors import TryLater
from backend.chain.flight import Flight, as_mapping
from backend.chain.identity import Conflict, Leg, Stored, differences, leg_of
from backend.chain.json_objects import Json
from backend.index.queries import IndexReader
from backend.questions import scan
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks

MOST_SHOWN = 100
MOST_READ_BLOCKS = 256  # that the index lacks; an import is fewer ahead of it
INDEX_PATIENCE_S = 5.0
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class LegRecords:
    """Holds what the blocks up to `height` have of the legs of some flights."""

    height: int
    by_leg: dict[Leg, list[Stored]]

    def of_each(self, flights: Sequence[Flight]) -> list[Sequence[Stored]]:
        """Return for each flight the records of its leg."""
        if not self.by_leg:
            return [()] * len(flights)
        return [self.by_leg.get(leg_of(flight), ()) for flight in flights]


class RecordsInBlocks:
    """Finds what blocks hold of flights: by the index, and by reading the blocks that it lacks."""

    def __init__(self, index: IndexReader, store: BlockStore, blocks: CachedBlocks) -> None:
        self._index = index
        self._store = store
        self._blocks = blocks

    def indexed(self, flights: Sequence[Flight]) -> list[Sequence[Stored]]:
        """Return for each flight what the index has of its leg. Raises TryLater."""
        return LegRecords(0, self._index.records_of(flights)).of_each(flights)

    def up_to_tip(self, flights: Sequence[Flight], known: LegRecords | None = None) -> LegRecords:
        """Return what all blocks that there are now hold of the legs of `flights`.

        known: what this has returned for the same flights before. Raises TryLater without an index,
        or while it lacks so many blocks that reading them would take long; and DamagedBlock.
        """
        height = self._store.height()
        if known is None or known.height > height:  # or the chain was cut
            indexed = self._indexed_height(height)
            known = LegRecords(indexed, self._index.records_of(flights))
        by_leg = {leg: list(records) for leg, records in known.by_leg.items()}
        newer = scan.records_of(self._blocks, flights, known.height + 1, height)
        for leg, records in newer.items():
            by_leg.setdefault(leg, []).extend(records)
        return LegRecords(height, by_leg)

    def _indexed_height(self, height: int) -> int:
        """Return where the index stands, as soon as it lacks few of the blocks up to `height`."""
        deadline = time.monotonic() + INDEX_PATIENCE_S
        while (indexed := self._index.position().height) < height - MOST_READ_BLOCKS:
            if time.monotonic() >= deadline:
                raise TryLater(
                    f"the index lacks {height - indexed:,} blocks, so new flights cannot be told "
                    "from stored ones; try again later"
                )
            time.sleep(POLL_S)
        return min(indexed, height)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Says what the ledger has of flights.

    copies: the records that say the same, by the positions of the flights. conflicts: the flights
    of which it says something else.
    """

    copies: dict[int, Stored]
    conflicts: list[Conflict]

    def members_of_one(self) -> Json:
        """Return what an answer says about a single flight."""
        copies = [record.transaction_id for record in self.copies.values()]
        conflicts = [conflict.stored.transaction_id for conflict in self.conflicts]
        return {
            "duplicate_of": next(iter(copies), None),
            "conflicts_with": next(iter(conflicts), None),
        }

    def conflict_members(self) -> Json:
        """Return what an answer says about conflicts."""
        return {
            "conflicts": len(self.conflicts),
            "conflicting": [shown_conflict(conflict) for conflict in self.conflicts[:MOST_SHOWN]],
        }


def shown_conflict(conflict: Conflict) -> Json:
    """Return what an answer says about a conflict."""
    flight, stored = conflict
    return {
        "TRANSACTION_ID": stored.transaction_id,
        "BLOCK_HEIGHT": stored.height,
        "fields": list(differences(flight, stored.flight)),
        "flight": as_mapping(flight),
        "stored": as_mapping(stored.flight),
    }
