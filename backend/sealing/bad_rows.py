"""Counts the bad rows of a source, and keeps them as they stand there, so that they can be mended.

They are below the header of their file, so what is mended can be imported as the file itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from backend.base.errors import BadRow, InvalidInput, excerpt
from backend.sealing.spool import Spool
from backend.sources.source import (
    CANCELLED,
    NOT_ARRIVED,
    Fault,
    RawRows,
    Source,
    bad_rows,
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


@dataclass(frozen=True, slots=True)
class BadRowsOfBatch:
    """The bad rows of a batch.

    rows: what is wrong with each, what became of its flight (`source.state_of`, "" if that cannot
    be told), and how it stands in the file. header: what stands there above them. hopeless: how
    many more there are.
    """

    rows: Sequence[tuple[BadRow, str, str]]
    header: str | None
    hopeless: int

    @classmethod
    def of(cls, source: Source, raw: RawRows, faults: Sequence[Fault]) -> "BadRowsOfBatch":
        """Return those of `raw`. faults: what `Validator.judge` found."""
        rows, places = list[tuple[BadRow, str, str]](), dict[int, int]()
        for problem in bad_rows(source, raw, faults):
            places = places or {line: place for place, line in enumerate(raw.lines)}
            place = places.get(problem.row)
            state = "" if place is None else state_of(raw, place)
            problem.value = excerpt(problem.value)  # a line may be long
            rows.append((problem, state, raw.text(problem.row)))
        return cls(rows, raw.header, raw.hopeless)


class BadRowCounter:
    """Adds the bad rows of a source, batch by batch, to a `BadRows`."""

    def __init__(self, bad: BadRows, spool: Spool | None) -> None:
        """spool: takes the rows as they stand in the file, below its header."""
        self._bad = bad
        self._spool = spool
        self._header: str | None = None
        if spool is not None:
            bad.start = bad.end = spool.end

    def add(self, batch: BadRowsOfBatch) -> None:
        """Add the bad rows of a batch."""
        self._bad.count += len(batch.rows) + batch.hopeless
        for problem, state, text in batch.rows:
            if len(self._bad.first) < SHOWN_BAD_ROWS:
                self._bad.first.append(problem)
            self._bad.cancelled += state == CANCELLED
            self._bad.not_arrived += state == NOT_ARRIVED
            if self._spool is not None and batch.header is not None:
                self._keep(self._spool, batch.header, problem)
                self._write(self._spool, text)

    def _keep(self, spool: Spool, header: str, problem: BadRow) -> None:
        """Write the header of a row. Raises InvalidInput if it is not that of the rows before."""
        if self._header is None:
            self._header = header
            self._bad.is_json = not header
            self._write(spool, header)
        elif self._header != header:
            file = problem.place.rpartition(", ")[0]
            reason = "has bad rows, and another header than a file before it that has some, too"
            raise InvalidInput("file", file, f"{reason}; import it alone")

    def _write(self, spool: Spool, line: str) -> None:
        if line:
            spool.append(f"{line}\n".encode(errors="surrogateescape"))
            self._bad.end = spool.end
