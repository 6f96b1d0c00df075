"""Compares flights that are sent with the records that the ledger has of the same flights."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backend.chain.flight import Flight, as_mapping
from backend.chain.identity import Conflict, Stored, differences

MOST_SHOWN = 100

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the ledger says about flights.

    copies: the records that say the same, by the positions of the flights. conflicts: the flights
    of which it says something else.
    """

    copies: dict[int, Stored]
    conflicts: list[Conflict]

    def conflict_members(self) -> Json:
        """Return what an answer says about conflicts."""
        return {
            "conflicts": len(self.conflicts),
            "conflicting": [_shown(conflict) for conflict in self.conflicts[:MOST_SHOWN]],
        }


def compared(flights: Sequence[Flight], records: Sequence[Stored | None]) -> Comparison:
    """Compare each flight with the record of it, if there is one."""
    copies, conflicts = {}, []
    for place, (flight, record) in enumerate(zip(flights, records, strict=True)):
        if record is not None and differences(flight, record.flight):
            conflicts.append(Conflict(flight, record))
        elif record is not None:
            copies[place] = record
    return Comparison(copies, conflicts)


def _shown(conflict: Conflict) -> Json:
    flight, stored = conflict
    return {
        "TRANSACTION_ID": stored.transaction_id,
        "BLOCK_HEIGHT": stored.height,
        "fields": list(differences(flight, stored.flight)),
        "flight": as_mapping(flight),
        "stored": as_mapping(stored.flight),
    }
