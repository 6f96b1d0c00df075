"""Sums a block up in cells, one for each (carrier, day) in it.

A header commits to the Merkle root of the cells (`summary_root`), sorted by carrier and day, so an
average can be proved from headers and cells alone, without the flights.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from backend.chain import merkle
from backend.chain.columns import Columns
from backend.chain.fields import Value

ON_TIME_BEFORE_MINUTES = 15  # the definition of the US Department of Transportation


_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Cell:
    """Adds up one carrier's flights of one day in one block.

    flights: how many there are. cancelled: how many of them were cancelled. arrived, departed: how
    many have an ARR_DELAY (the rest were diverted), a DEP_DELAY. on_time: how many arrived less
    than 15 minutes late. sum_arr_delay, sum_dep_delay: the sums of these delays, in minutes.
    """

    OP_CARRIER_AIRLINE_ID: int
    FL_DATE: str
    flights: int
    cancelled: int
    arrived: int
    departed: int
    on_time: int
    sum_arr_delay: int
    sum_dep_delay: int

    def canonical(self) -> bytes:
        """Return the bytes that `summary_root` commits to: those of `canonical.canonical`."""
        return _encode(self)


CELL_COLUMNS = ("OP_CARRIER_AIRLINE_ID", "FL_DATE", "CANCELLED", "ARR_DELAY", "DEP_DELAY")


def cells_of(columns: Columns) -> list[Cell]:
    """Return the cells of a block's transactions, sorted by carrier and day.

    columns: at least CELL_COLUMNS.
    """
    groups: dict[tuple[Value, Value], list[int]] = {}
    rows = columns.rows(CELL_COLUMNS)
    for carrier, day, cancelled, arr_delay, dep_delay in rows:
        counts = groups.setdefault((carrier, day), [0] * 7)
        add_flight(counts, cancelled, arr_delay, dep_delay)
    cells = [
        Cell(int(carrier or 0), str(day), *counts) for (carrier, day), counts in groups.items()
    ]
    return sorted(cells, key=lambda cell: (cell.OP_CARRIER_AIRLINE_ID, cell.FL_DATE))


def add_flight(counts: list[int], cancelled: Value, arr_delay: Value, dep_delay: Value) -> None:
    """Count one flight into `counts`: the seven numbers of a cell, in its order."""
    counts[0] += 1
    if cancelled:
        counts[1] += 1
    if isinstance(arr_delay, int):
        counts[2] += 1
        counts[4] += arr_delay < ON_TIME_BEFORE_MINUTES
        counts[5] += arr_delay
    if isinstance(dep_delay, int):
        counts[3] += 1
        counts[6] += dep_delay


def summary_root(cells: Iterable[Cell]) -> bytes:
    """Return the Merkle root over the cells."""
    return merkle.root(merkle.leaf_hashes(cell.canonical() for cell in cells))
