"""Reads a batch of flights from the body of a request, which is NDJSON or CSV.

NDJSON is one JSON object a line, with the same rules as for a single flight: no other members. CSV
is a table as `bts` reads it, in which other columns are ignored. Blank lines are skipped; rows are
numbered by their lines.

Whatever the body holds, time and memory grow with its bytes and no faster: it is taken apart piece
by piece, and of the rows that are wrong only the first `MOST_ERRORS` are described.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import islice

from backend.base.errors import BadRow, excerpt
from backend.chain.fields import FIELD, FIELDS, MISSING
from backend.chain.flight import MOST_ERRORS, Flight, unknown_reason
from backend.chain.json_objects import MAX_BYTES, RepeatedNameError, decoded
from backend.sources.bts import BtsFile
from backend.sources.packed import SentFile
from backend.sources.source import BATCH_ROWS, Fault, RawRows, Source, Validator, bad_rows, raw_rows
from backend.sources.table import BLOCK_BYTES, BYTE_ORDER_MARK

CSV, NDJSON = "csv", "ndjson"
REMEMBERED_VALUES = 2000  # for each field, in every worker

NumberedLine = tuple[int, bytes]

_SHOWN_BYTES = 1000  # of a line that is wrong; an excerpt of them is kept
_REQUIRED = [one.name for one in FIELDS if not one.nullable]
_SHORTEST_BYTES = sum(len(f'"{name}":0,') for name in _REQUIRED)  # of a flight in JSON
_validator = Validator(REMEMBERED_VALUES)


@dataclass(slots=True)
class Batch:
    """The flights of a batch, in their order, and its bad rows.

    errors: what is wrong with the first `MOST_ERRORS` of the bad rows. rejected: how many bad rows
    there are. rows_read: how many rows were read. is_whole: whether these are all rows.
    """

    flights: list[Flight] = field(default_factory=list)
    errors: list[BadRow] = field(default_factory=list)
    rejected: int = 0
    rows_read: int = 0
    is_whole: bool = True

    def has_all_errors(self) -> bool:
        """Whether so many errors are described that of further bad rows only the number counts."""
        return len(self.errors) >= MOST_ERRORS


def batch_of(
    body: bytes,
    kind: str,
    most_flights: int,
    *,
    stops: bool = True,
    pause: Callable[[], None] = lambda: None,
) -> Batch:
    """Read the flights in `body`, which is CSV or NDJSON as `kind` says.

    It is read no further when there are more flights than `most_flights`, or, if `stops`, as many
    bad rows as `MOST_ERRORS`. pause: called again and again meanwhile; what it raises ends the
    work.

    Raises InvalidFlight or BadRow if the body cannot be read at all, because it is no table of
    flights or not UTF-8.
    """
    batch = Batch()
    source: Source
    if kind == CSV:
        source = BtsFile(SentFile(body), batch.has_all_errors)
    else:
        source = NdjsonLines(body, batch.has_all_errors)
    with closing(source.rows()) as rows:
        for raw in rows:
            if len(batch.flights) > most_flights or (stops and batch.has_all_errors()):
                batch.is_whole = False
                break
            _add(batch, source, raw)
            pause()
    return batch


def _add(batch: Batch, source: Source, raw: RawRows) -> None:
    columns, bad = _validator.judge(raw)
    batch.flights.extend(zip(*columns, strict=True))
    for error in islice(bad_rows(source, raw, bad), MOST_ERRORS - len(batch.errors)):
        error.value = excerpt(error.value)  # a line may be long, and what it holds still larger
        batch.errors.append(error)
    rejected = len(raw.faults) + raw.hopeless
    batch.rejected += rejected + len(bad)
    batch.rows_read += rejected + len(raw.lines)


class NdjsonLines:
    """Reads one flight from each line, which is JSON.

    needs_no_reason: whether the reader does not want to know any more why a row is bad. Then lines
    that are too short for a flight are only counted, as there may be millions.
    """

    label = "body"
    unit = "line"

    def __init__(self, body: bytes, needs_no_reason: Callable[[], bool]) -> None:
        self._bytes = len(body)
        self._needs_no_reason = needs_no_reason
        self._file = BytesIO(body.removeprefix(BYTE_ORDER_MARK))

    def progress(self) -> float:
        """Return the share of the bytes read, 0 to 1."""
        return self._file.tell() / self._bytes if self._bytes else 1.0

    def rows(self) -> Generator[RawRows, None, None]:
        """Yield all lines that are not blank."""
        lines = enumerate(self._file, 1)
        is_whole = False
        while not is_whole:
            shortest = _SHORTEST_BYTES if self._needs_no_reason() else 0
            part, hopeless, is_whole = _part(lines, shortest)
            raw = raw_rows((number, _object(number, line)) for number, line in part)
            yield replace(raw, hopeless=hopeless)


def _part(lines: Iterable[NumberedLine], shortest: int) -> tuple[list[NumberedLine], int, bool]:
    """Take about `BLOCK_BYTES` from `lines`.

    Returns at most `BATCH_ROWS` lines that are not blank; how many lines there were that have fewer
    bytes than `shortest`; and whether these are the last.
    """
    part: list[NumberedLine] = []
    hopeless = size = 0
    for number, line in lines:
        size += len(line)
        if not line.isspace():
            if len(line) < shortest:
                hopeless += 1
            else:
                part.append((number, line))
        if len(part) == BATCH_ROWS or size >= BLOCK_BYTES:
            return part, hopeless, False
    return part, hopeless, True


def _object(number: int, line: bytes) -> dict[str, object] | Fault:
    """Return the object in a line, or what is wrong with it."""
    if len(line) > MAX_BYTES:
        return _fault(number, line, f"is longer than {MAX_BYTES} bytes")
    try:
        record = decoded(line)
    except RepeatedNameError as error:
        return Fault(number, error.name, error.value, str(error))
    except (ValueError, RecursionError) as error:
        return _fault(number, line, f"is not JSON: {error}")
    if not isinstance(record, dict):
        return _fault(number, line, "must be a JSON object with the fields of a flight")
    return _wrong_member(number, record) or record


def _wrong_member(number: int, record: dict[str, object]) -> Fault | None:
    for name in record.keys() - FIELD.keys():
        return Fault(number, name, record[name], unknown_reason(name))
    if len(record) < len(_REQUIRED):
        name = next(name for name in _REQUIRED if name not in record)
        return Fault(number, name, None, MISSING)
    return None


def _fault(number: int, line: bytes, reason: str) -> Fault:
    return Fault(number, "line", line.rstrip()[:_SHOWN_BYTES].decode(errors="replace"), reason)
