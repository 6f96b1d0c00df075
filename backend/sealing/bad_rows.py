"""Counts the bad rows of a source, and keeps them as they stand there, so that they can be mended.

They are below the header of their file, so what is mended can be imported as the file itself.
"""

from dataclasses import dataclass, field

from backend.base.errors import BadRow, InvalidInput, excerpt
from backend.sealing.spool import Spool
from backend.sources.source import (
    CANCELLED,
    NOT_ARRIVED,
    RawRows,
    Written,
    state_of,
)

SHOWN_BAD_ROWS = 20


@dataclass(slots=True)
class BadRows:
    """The bad rows of a source.

    count: how many. cancelled, not_arrived: how many of them are flights that were cancelled, or
    have no time of arrival for another reason. first: the first `SHOWN_BAD_ROWS`. start, end: where
    they stand in the spool of bad rows. is_json: whether they are a JSON object a line.
    """

    count: int = 0
    cancelled: int = 0
    not_arrived: int = 0
    first: list[BadRow] = field(default_factory=list)
    start: int = 0
    end: int = 0
    is_json: bool = False


class BadRowCounter:
    """Adds the bad rows of a source, batch by batch, to a `BadRows`."""

    def __init__(self, bad: BadRows, spool: Spool | None) -> None:
        """spool: takes the rows as they stand in the file, below its header."""
        self._bad = bad
        self._spool = spool
        self._header: str | None = None
        if spool is not None:
            bad.start = bad.end = spool.end

    def add(self, problem: BadRow, raw: RawRows) -> None:
        """Add a bad row of a batch."""
        self._bad.count += 1
        if len(self._bad.first) < SHOWN_BAD_ROWS:
            problem.value = excerpt(problem.value)  # a line may be long
            self._bad.first.append(problem)
        place = raw.lines.index(problem.row) if problem.row in raw.lines else None
        if place is not None:
            state = state_of(raw, place)
            self._bad.cancelled += state == CANCELLED
            self._bad.not_arrived += state == NOT_ARRIVED
        if self._spool is not None and raw.written is not None:
            self._keep(self._spool, raw.written, problem)

    def _keep(self, spool: Spool, written: Written, problem: BadRow) -> None:
        """Write the row. Raises InvalidInput if it cannot stand below the same header."""
        if self._header is None:
            self._header = written.header
            self._bad.is_json = not written.header
            self._write(spool, written.header)
        elif self._header != written.header:
            file = problem.place.rpartition(", ")[0]
            reason = "has bad rows, and another header than a file before it that has some, too"
            raise InvalidInput("file", file, f"{reason}; import it alone")
        self._write(spool, written.text(problem.row))

    def _write(self, spool: Spool, line: str) -> None:
        if line:
            spool.append(f"{line}\n".encode(errors="surrogateescape"))
            self._bad.end = spool.end
