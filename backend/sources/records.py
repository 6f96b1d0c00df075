"""Defines records: what a format makes of a file, before anybody knows that they are flights.

A file has titles, and under each title a column of values. A format yields them in batches, so that
memory stays bounded; what the columns mean is decided elsewhere, by the titles.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from backend.base.errors import BadRow
from backend.sources.source import TAKEN_AS_THEY_ARE, Unusable


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Some rows of a file, at most `BATCH_ROWS`.

    column: returns the values below the title at a position, each a str, number, None or
        `Unusable`; they are cut out when they are asked for, as most are not needed.
    numbers: the line or row number of each row, ascending.
    faults: lines that are no rows; their numbers are not in `numbers`.
    repeated_headers: how many lines were left out because they repeat the header.
    text: returns the row or fault with a number as it stands in the file.
    """

    column: Callable[[int], Sequence[object]]
    numbers: Sequence[int]
    faults: Sequence[BadRow] = ()
    repeated_headers: int = 0
    text: Callable[[int], str] = lambda number: ""


@dataclass(frozen=True, slots=True)
class Records:
    """What a file holds, whatever its format.

    titles: the names of the columns as they are written, stripped.
    batches: make its rows, each of which may be left out; the iterator and they raise InvalidInput
        where the file cannot be read on.
    unit: what the numbers of rows count: "line", "object", "transaction" or "row".
    header: what stands above the rows; "" if nothing does.
    """

    titles: tuple[str, ...]
    batches: Iterator[Callable[[], RecordBatch]]
    unit: str = "line"
    header: str = ""


def text_of(lines: Sequence[str], first: int) -> Callable[[int], str]:
    """Return what returns the line with a number. first: that of the first."""
    return lambda number: lines[number - first]


def usable(values: Sequence[object]) -> Sequence[object]:
    """Return the values of a column as a `RecordBatch` may hold them."""
    if TAKEN_AS_THEY_ARE.issuperset(map(type, values)):
        return values
    return [v if type(v) in TAKEN_AS_THEY_ARE else Unusable(v) for v in values]
