"""Reads a batch of flights from the body of a request, which is NDJSON or CSV.

NDJSON is one JSON object a line, with the same rules as for a single flight: no other members. CSV
is a table as `bts` reads it, in which other columns are ignored. Blank lines are skipped; rows are
numbered by their lines.
"""

import json
from collections.abc import Generator
from dataclasses import dataclass, field

import msgspec

from backend.chain.fields import FIELD
from backend.chain.flight import Flight, unknown_reason
from backend.errors import BadRow
from backend.sources.bts import BtsFile
from backend.sources.packed import SentFile
from backend.sources.source import (
    BATCH_ROWS,
    Fault,
    RawRows,
    Source,
    Validator,
    raw_rows,
    validated,
)

CSV, NDJSON = "csv", "ndjson"
REMEMBERED_VALUES = 2000  # for each field, in every worker

_validator = Validator(REMEMBERED_VALUES)


@dataclass(frozen=True, slots=True)
class Batch:
    """The flights of a batch, in their order, and its bad rows."""

    flights: list[Flight] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)


def batch_of(body: bytes, kind: str) -> Batch:
    """The flights in `body`, which is CSV or NDJSON as `kind` says.

    Raises InvalidFlight or BadRow if it cannot be read at all, because it is no table of flights or
    not UTF-8.
    """
    source: Source = BtsFile(SentFile(body)) if kind == CSV else NdjsonLines(body)
    batch = Batch()
    for columns in validated(source, batch.bad.append, _validator):
        batch.flights.extend(zip(*columns, strict=True))
    return batch


class NdjsonLines:
    """Reads one flight from each line, which is JSON."""

    label = "body"
    unit = "line"

    def __init__(self, body: bytes) -> None:
        self._lines = body.split(b"\n")
        self._read = 0

    def progress(self) -> float:
        """The share of the lines read, 0 to 1."""
        return self._read / len(self._lines)

    def rows(self) -> Generator[RawRows, None, None]:
        """All lines that are not blank."""
        for start in range(0, len(self._lines), BATCH_ROWS):
            lines = self._lines[start : start + BATCH_ROWS]
            self._read = start + len(lines)
            numbered = enumerate(lines, start + 1)
            yield raw_rows((n, _object(n, line)) for n, line in numbered if line.strip())


def _object(number: int, line: bytes) -> dict[str, object] | Fault:
    """The object in a line, or what is wrong with it."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return Fault(number, "line", line.decode(errors="replace"), f"is not JSON: {error}")
    if not isinstance(record, dict):
        reason = "must be a JSON object with the fields of a flight"
        return Fault(number, "line", line.decode(errors="replace"), reason)
    if line.count(b":") != len(record) and (twice := _given_twice(line)) is not None:
        return Fault(number, twice, record[twice], "is given twice")
    for name in record.keys() - FIELD.keys():
        return Fault(number, name, record[name], unknown_reason(name))
    return record


def _given_twice(line: bytes) -> str | None:
    """A name that the object in `line` has more than once; msgspec silently keeps the last."""
    pairs: list[tuple[str, object]] = []

    def keep(of_object: list[tuple[str, object]]) -> None:
        pairs[:] = of_object  # the outermost object comes last

    json.loads(line, object_pairs_hook=keep)
    names = [name for name, _ in pairs]
    return next((name for name in names if names.count(name) > 1), None)
