"""Reads flights from JSON lines (NDJSON), one object a line, as the service exports them.

The members are named as the fields of a flight; others, such as TRANSACTION_ID and BLOCK_HEIGHT,
are ignored, because the ledger gives its own. Blank lines are skipped. The file may end with a line
`{"complete":true,"count":N,…}`; then N must be the number of flights, and nothing may follow.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from backend.base.words import counted
from backend.chain.fields import FIELD_NAMES
from backend.sources.packed import PackedFile
from backend.sources.records import RecordBatch, Records, batch_of_objects
from backend.sources.source import Fault, NumberedObject, RawRows
from backend.sources.table import line_batches, line_blocks

_MEMBERS = {"FL_DATE", "complete"}  # with one of these, a line is not a block of the study


def is_json_lines(start: bytes) -> bool:
    """Return whether a file that starts with these bytes is NDJSON, not a block of the study."""
    line = start.partition(b"\n")[0]
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and not _MEMBERS.isdisjoint(value)


class JsonLines:
    """Reads the NDJSON file at `path`, plain or packed as `packed` allows."""

    unit = "line"

    def __init__(self, path: Path) -> None:
        self._file = PackedFile(path)
        self.label = self._file.label

    def progress(self) -> float:
        """Return the share of the (packed) bytes read, 0 to 1."""
        return self._file.progress()

    def rows(self) -> Generator[RawRows, None, None]:
        """All rows. Raises InvalidInput if the file is unreadable or contradicts its last line."""
        with opened_json_lines(self._file) as records:
            places = [records.titles.index(name) for name in FIELD_NAMES]
            for batch in records.batches:
                columns = [batch.columns[place] for place in places]
                yield RawRows(columns, batch.numbers, batch.faults)


@contextmanager
def opened_json_lines(file: PackedFile) -> Iterator[Records]:
    """Open the JSON lines in `file`. Their titles are the names of the members.

    Raises InvalidInput if the file cannot be read; the iterator `batches` does, too, and if the
    file contradicts its last line.
    """
    with file.opened() as read:
        lines = line_batches(line_blocks(file, read))
        yield Records(FIELD_NAMES, _batches(file, lines))


def _batches(file: PackedFile, batches: Iterable[Sequence[str]]) -> Iterator[RecordBatch]:
    rows, first, end = 0, 1, _End(file)
    for lines in batches:
        batch = batch_of_objects(_objects(lines, first, end), FIELD_NAMES)
        rows += len(batch.numbers) + len(batch.faults)
        first += len(lines)
        yield batch
    end.check(rows)


class _End:
    """Checks the last line of a file, which may say that it is complete."""

    def __init__(self, file: PackedFile) -> None:
        self._file = file
        self._line = 0
        self._count: object = None

    def note(self, line: int, count: object) -> None:
        """Note that the file says on this line that it has `count` flights."""
        self.require_none_before(line)
        self._line, self._count = line, count

    def require_none_before(self, line: int) -> None:
        """Raise InvalidInput if an earlier line said that the file is complete."""
        if self._line:
            raise self._file.problem(
                f"continues in line {line} after the line that says it is complete"
            )

    def check(self, flights: int) -> None:
        """Raise InvalidInput if the file does not have as many flights as it says."""
        if self._line and self._count != flights:
            raise self._file.problem(
                f"has {counted(flights, 'flight')} but says that it has {self._count:,}; download "
                "it again"
            )


def _objects(lines: Sequence[str], first: int, end: _End) -> Iterator[NumberedObject]:
    """The objects on lines numbered from `first` on; `end` gets the line that ends the file."""
    for number, value in _values(lines, first):
        end.require_none_before(number)
        if isinstance(value, Fault):
            yield number, value
        elif not isinstance(value, dict):
            yield number, Fault(number, "line", value, "must be a JSON object")
        elif value.get("complete") is True and "FL_DATE" not in value:
            end.note(number, value.get("count"))
        else:
            yield number, value


def _values(lines: Sequence[str], first: int) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            yield number, Fault(number, "line", line, "is not JSON")
