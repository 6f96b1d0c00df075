"""Counts the bad rows of a source, and keeps them as they stand there, so that they can be mended.

They are below the header of their file, so what is mended can be imported as the file itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from backend.base.errors import BadRow, InvalidInput, excerpt
from backend.sealing.spool import Spool
from backend.sources.source import CANCELLED, NOT_ARRIVED, RawRows, is_misdated, state_of

SHOWN_BAD_ROWS = 20


@dataclass(frozen=True, slots=True)
class BadRowsOfBatch:
    """The bad rows of a batch.

    rows: what is wrong with each, what became of its flight (`source.state_of`), and how it stands
    in the file. header: what stands there above them.
    """

    rows: Sequence[tuple[BadRow, str, str]]
    header: str | None

    @classmethod
    def of(cls, raw: RawRows, bad: Sequence[BadRow]) -> "BadRowsOfBatch":
        """Return those of `raw`. bad: what `Validator.judge` found."""
        for problem in bad:
            problem.value = excerpt(problem.value)  # a line may be long
        return cls([(row, state_of(raw, row), raw.text(row.row)) for row in bad], raw.header)


@dataclass(slots=True)
class BadRows:
    """The bad rows of a source.

    count: how many. cancelled, not_arrived: how many of them are flights that were cancelled, or
    have no time of arrival for another reason. misdated: as in `source.is_misdated`. first: the
    first `SHOWN_BAD_ROWS`. start, end: where they stand in the spool of bad rows. header: what
    stands above them there; None without any.
    """

    count: int = 0
    cancelled: int = 0
    not_arrived: int = 0
    misdated: int = 0
    first: list[BadRow] = field(default_factory=list)
    start: int = 0
    end: int = 0
    header: str | None = None

    @property
    def is_json(self) -> bool:
        """Whether they are a JSON object a line."""
        return self.header == ""

    def add(self, batch: BadRowsOfBatch, spool: Spool | None) -> None:
        """Add the bad rows of a batch. spool: takes them as they stand in the file."""
        self.count += len(batch.rows)
        for problem, state, text in batch.rows:
            if len(self.first) < SHOWN_BAD_ROWS:
                self.first.append(problem)
            self.cancelled += state == CANCELLED
            self.not_arrived += state == NOT_ARRIVED
            self.misdated += is_misdated(problem)
            if spool is not None and batch.header is not None:
                self._keep(spool, batch.header, problem, text)

    def _keep(self, spool: Spool, header: str, problem: BadRow, text: str) -> None:
        """Write a row below its header. Raises InvalidInput if that is not of the rows before."""
        lines = [text]
        if self.header is None:
            self.header, self.start, lines = header, spool.end, [header, text]
        elif self.header != header:
            file = problem.place.rpartition(", ")[0]
            reason = "has bad rows, and another header than a file before it that has some, too"
            raise InvalidInput("file", file, f"{reason}; import it alone")
        for line in filter(None, lines):
            spool.append(f"{line}\n".encode(errors="surrogateescape"))
        self.end = spool.end
