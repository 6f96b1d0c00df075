"""Counts the bad rows of a source, and keeps them as CSV, so that they can be mended."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import StringIO

from backend.base.errors import BadRow
from backend.sealing.spool import Spool
from backend.sources.source import (
    CANCELLED,
    NOT_ARRIVED,
    RawRows,
    Unusable,
    Written,
    state_of,
)

SHOWN_BAD_ROWS = 20


@dataclass(slots=True)
class BadRows:
    """The bad rows of a source.

    count: how many. cancelled, not_arrived: how many of them are flights that were cancelled, or
    have no time of arrival for another reason. first: the first `SHOWN_BAD_ROWS`. start, end: where
    they stand as CSV in the spool of bad rows.
    """

    count: int = 0
    cancelled: int = 0
    not_arrived: int = 0
    first: list[BadRow] = field(default_factory=list)
    start: int = 0
    end: int = 0


class BadRowCounter:
    """Adds the bad rows of a source, batch by batch, to a `BadRows`."""

    def __init__(self, bad: BadRows, spool: Spool | None) -> None:
        """spool: takes the rows as they stand in the file, below its header."""
        self._bad = bad
        self._spool = spool
        self._titles: list[str] = []
        if spool is not None:
            bad.start = bad.end = spool.end

    def add(self, problem: BadRow, raw: RawRows) -> None:
        """Add a bad row of a batch."""
        self._bad.count += 1
        if len(self._bad.first) < SHOWN_BAD_ROWS:
            self._bad.first.append(problem)
        place = raw.lines.index(problem.row) if problem.row in raw.lines else None
        if place is not None:
            state = state_of(raw, place)
            self._bad.cancelled += state == CANCELLED
            self._bad.not_arrived += state == NOT_ARRIVED
        if self._spool is not None and raw.written is not None:
            self._keep(problem, raw.written, place)

    def _keep(self, problem: BadRow, written: Written, place: int | None) -> None:
        """Write the row as CSV. place: that in its batch; None if the line is no row."""
        text = ""
        if self._titles != [*written.titles]:
            self._titles = [*written.titles]
            text = _csv_line(self._titles)
        if place is None:
            text += f"{problem.value}\n"
        else:
            text += _csv_line(column[place] for column in written.columns)
        assert self._spool is not None
        self._spool.append(text.encode(errors="surrogateescape"))
        self._bad.end = self._spool.end


def _csv_line(values: Iterable[object]) -> str:
    line = StringIO()
    cells = [value.value if isinstance(value, Unusable) else value for value in values]
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
