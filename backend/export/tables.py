"""Makes tables of the flights in blocks: month by month, and sorted as the files have them.

The same blocks always give the same tables in the same order, so that an export can be checked by
making its tables again. Rows are sorted by carrier, day and id. So programs skip the row groups of
other carriers by their statistics, and a flight takes 10 bytes; sorted by day first, it takes 14.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from backend.base.progress import Progress
from backend.chain.block import NO_PREVIOUS, Block
from backend.chain.columns import COLUMN_NAMES, Column
from backend.chain.fields import FIELD
from backend.storage.block_store import BlockStore
from backend.storage.codec import decoded, linked

MOST_ROWS = 1_000_000  # in memory, and so in a file
PARTITION = "YEAR"  # stands in the name of the folder, as does the month
ID, HEIGHT = "TRANSACTION_ID", "BLOCK_HEIGHT"
_SORTED_BY = [(name, "ascending") for name in ("OP_CARRIER_AIRLINE_ID", "FL_DATE", ID)]
_TYPES = {"integer": pa.int32(), "date": pa.date32()}
_TIME = pa.timestamp("ms", "UTC")
_NAMES = [name for name in COLUMN_NAMES if name != PARTITION]


class MonthTable(NamedTuple):
    """Flights of a month, at most `MOST_ROWS`."""

    year: int
    month: int
    rows: pa.Table


def tables(store: BlockStore, first: int, height: int, progress: Progress) -> Iterator[MonthTable]:
    """Yield the flights in blocks `first` to `height`, each of which is checked and linked.

    Raises DamagedBlock.
    """
    months: defaultdict[tuple[int, int], list[pa.Table]] = defaultdict(list)
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)
    below = store.place(first - 1).hash.hex() if first else NO_PREVIOUS
    for block in linked(range(first, height + 1), store.block, below):
        for month, rows in _by_month(block):
            months[month].append(rows)
            counts[month] += rows.num_rows
        if sum(counts.values()) >= MOST_ROWS:
            largest = max(counts, key=lambda month: (counts[month], month))
            del counts[largest]
            yield _sorted(largest, months.pop(largest))
        progress(block.header.height + 1 - first, height + 1 - first)
    for month in sorted(months):
        yield _sorted(month, months.pop(month))


def _by_month(block: Block) -> Iterator[tuple[tuple[int, int], pa.Table]]:
    header = block.header
    if not header.transaction_count:
        return
    columns = decoded(block)
    arrays = {name: _array(name, columns[name]) for name in _NAMES}
    ids = range(header.first_transaction, header.first_transaction + columns.count)
    arrays[ID] = pa.array(ids, pa.int64())
    arrays[HEIGHT] = pa.repeat(pa.scalar(header.height, pa.int32()), columns.count)
    table, days = pa.table(arrays), columns["FL_DATE"]
    months = [(day.year, day.month) for day in map(_day, days.values)]
    if len(set(months)) == 1:
        yield months[0], table
        return
    months_of_rows = [months[code] for code in days.codes]
    for month in sorted(set(months)):
        yield month, table.filter(pa.array([other == month for other in months_of_rows]))


def _array(name: str, column: Column) -> pa.Array:
    """Return a column of a block as an array with the type of its field."""
    field = FIELD.get(name)
    kind = _TYPES.get(field.kind, pa.string()) if field else _TIME
    values: Sequence[object] = column.values
    if kind == pa.date32():
        values = list(map(_day, values))
    width = pa.uint8() if isinstance(column.codes, bytes) else pa.uint16()
    codes = pa.Array.from_buffers(width, len(column.codes), [None, pa.py_buffer(column.codes)])
    return pa.array(values, kind).take(codes)


def _day(value: object) -> date:
    return date.fromisoformat(str(value))


def _sorted(month: tuple[int, int], parts: list[pa.Table]) -> MonthTable:
    rows = pa.concat_tables(parts)
    return MonthTable(*month, rows.take(pc.sort_indices(rows, _SORTED_BY)).combine_chunks())
