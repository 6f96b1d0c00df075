"""The folder of results of a run: a manifest, tables as CSV, and the files made from them.

    manifest.json   experiment, mode, K, seed, versions, machine, times, and whether it is complete
    *.csv           raw rows, written line by line while they are measured (RFC 4180)
    server.log      the servers' logs
    summary.json, report.html   made by `analyse` from the above, byte for byte the same each time

A table is flushed when a row is written a second or more after the last flush, so that rows survive
whatever ends a run.
"""

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from time import monotonic
from types import UnionType
from typing import Any, TextIO, TypeVar, cast

MANIFEST, SUMMARY, REPORT = "manifest.json", "summary.json", "report.html"
FLUSH_EVERY_S = 1.0
YES, NO = "yes", "no"  # how a bool stands in a table


class ResultsError(Exception):
    """A folder is not one of results, or lacks a table; the message names it."""


class Line:
    """A line of a table, as a dataclass whose fields are the columns.

    A field is of text, a number, a number or None (an empty cell), or a bool (yes or no).
    """

    __slots__: tuple[str, ...] = ()

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in fields(cast("Any", cls)))

    def cells(self) -> dict[str, Any]:
        """The line as a row of the table: column -> value."""
        return {name: getattr(self, name) for name in self.columns()}


OneLine = TypeVar("OneLine", bound=Line)
Columns = Sequence[str] | type[Line]


class TableWriter:
    """Writes rows of a table, and first a header if the file is empty."""

    def __init__(self, stream: TextIO, columns: Columns) -> None:
        self._stream = stream
        self._writer = csv.writer(stream)
        self._columns = _names(columns)
        self._flush_at_s = 0.0
        if stream.tell() == 0:
            self._writer.writerow(self._columns)

    def write(self, **cells: object) -> None:
        """Add a row; None becomes an empty cell. Raises ValueError unless every column is given."""
        if cells.keys() != set(self._columns):
            raise ValueError(f"row has {sorted(cells)}, the table has {sorted(self._columns)}")
        self._writer.writerow([_cell(cells[name]) for name in self._columns])
        if monotonic() >= self._flush_at_s:
            self.flush()

    def add(self, line: Line) -> None:
        """Add a line. Raises ValueError for a line of another table."""
        self.write(**line.cells())

    def flush(self) -> None:
        """Hand all rows to the system, so that they can be read."""
        self._stream.flush()
        self._flush_at_s = monotonic() + FLUSH_EVERY_S


def _names(columns: Columns) -> tuple[str, ...]:
    return columns.columns() if isinstance(columns, type) else tuple(columns)


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return YES if value else NO
    return repr(value) if isinstance(value, float) else value  # repr keeps all digits


def _parsed(text: str, kind: Any) -> Any:
    """The value of a field of this type."""
    if kind is bool:
        return text == YES
    if isinstance(kind, UnionType):  # a number or None
        return _parsed(text, kind.__args__[0]) if text else None
    return kind(text)


class Results:
    """A folder of results, to be written or read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def table(self, name: str, columns: Columns) -> Iterator[TableWriter]:
        """Write a new table `name` (without .csv). Raises FileExistsError."""
        with (self.folder / f"{name}.csv").open("x", encoding="utf-8", newline="") as stream:
            yield TableWriter(stream, columns)

    @contextmanager
    def more(self, name: str, columns: Columns) -> Iterator[TableWriter]:
        """Append to the table `name`, which is made if it is missing; a torn last line is removed.

        Raises ResultsError if the table has other columns.
        """
        path = self.folder / f"{name}.csv"
        if path.exists():
            content = path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            os.truncate(path, len(whole))
            if whole and whole.splitlines()[0].decode() != ",".join(_names(columns)):
                raise ResultsError(f"{path} has other columns than this version; begin anew")
        with path.open("a", encoding="utf-8", newline="") as stream:
            yield TableWriter(stream, columns)

    def has(self, name: str) -> bool:
        """Whether there is a table `name`."""
        return (self.folder / f"{name}.csv").exists()

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of a table; every cell is text, "" if it is empty.

        A torn last line is left out. Raises ResultsError if there is no such table.
        """
        path = self.folder / f"{name}.csv"
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ResultsError(f"{self.folder} has no table {path.name}") from None
        whole = text[: text.rfind("\n") + 1]
        return list(csv.DictReader(whole.splitlines()))

    def rows_if_any(self, name: str) -> list[dict[str, str]]:
        """The rows of a table; none if there is no such table."""
        return self.rows(name) if self.has(name) else []

    def lines(self, name: str, kind: type[OneLine]) -> list[OneLine]:
        """The lines of a table. Raises ResultsError without it; ValueError, KeyError for others."""
        types = {field.name: field.type for field in fields(cast("Any", kind))}
        return [
            kind(**{column: _parsed(row[column], of) for column, of in types.items()})
            for row in self.rows(name)
        ]

    def lines_if_any(self, name: str, kind: type[OneLine]) -> list[OneLine]:
        """The lines of a table; none if there is no such table."""
        return self.lines(name, kind) if self.has(name) else []

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Write the manifest anew."""
        self._write(MANIFEST, content)

    def write_analysis(self, summary: Mapping[str, Any], report: str) -> None:
        """Write the summary and the report."""
        self._write(SUMMARY, summary)
        (self.folder / REPORT).write_text(report, encoding="utf-8")

    def manifest(self) -> dict[str, Any]:
        """Read the manifest. Raises ResultsError if this is not a folder of results."""
        return self._read(MANIFEST)

    def summary(self) -> dict[str, Any]:
        """Read the summary that `analyse` wrote. Raises ResultsError if there is none."""
        return self._read(SUMMARY)

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        (self.folder / name).write_text(text, encoding="utf-8")

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise ResultsError(f"{self.folder} is not a folder of results: no {name}") from None
        except ValueError as problem:
            raise ResultsError(f"{self.folder / name} is not JSON: {problem}") from problem
        return found
