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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from time import monotonic
from typing import Any, TextIO, TypeVar, cast

MANIFEST, SUMMARY, REPORT = "manifest.json", "summary.json", "report.html"
FLUSH_EVERY_S = 1.0


class ResultsError(Exception):
    """A folder is not one of results, or lacks a table; the message names it."""


class TableWriter:
    """Writes rows of a table, and first a header if the file is empty. columns: names, in order."""

    def __init__(self, stream: TextIO, columns: Sequence[str]) -> None:
        self._stream = stream
        self._writer = csv.writer(stream)
        self._columns = tuple(columns)
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

    def flush(self) -> None:
        """Hand all rows to the system, so that they can be read."""
        self._stream.flush()
        self._flush_at_s = monotonic() + FLUSH_EVERY_S


def _cell(value: object) -> object:
    return repr(value) if isinstance(value, float) else value  # repr keeps all digits


class Line:
    """A line of a table, as a dataclass whose fields, of text or numbers, are the columns."""

    __slots__: tuple[str, ...] = ()

    def cells(self) -> dict[str, Any]:
        """The line as a row of the table: column -> value."""
        return asdict(cast("Any", self))


OneLine = TypeVar("OneLine", bound=Line)


def lines(kind: type[OneLine], rows: Sequence[Mapping[str, str]]) -> list[OneLine]:
    """The lines of a table. Raises ValueError, KeyError for other columns."""
    columns = fields(cast("Any", kind))
    parse = {one.name: cast("Callable[[str], Any]", one.type) for one in columns}
    return [kind(**{name: of(row[name]) for name, of in parse.items()}) for row in rows]


class Results:
    """A folder of results, to be written or read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def table(self, name: str, columns: Sequence[str]) -> Iterator[TableWriter]:
        """Write a new table `name` (without .csv). Raises FileExistsError."""
        with (self.folder / f"{name}.csv").open("x", encoding="utf-8", newline="") as stream:
            yield TableWriter(stream, columns)

    @contextmanager
    def more(self, name: str, columns: Sequence[str]) -> Iterator[TableWriter]:
        """Append to the table `name`, which is made if it is missing; a torn last line is removed.

        Raises ResultsError if the table has other columns.
        """
        path = self.folder / f"{name}.csv"
        if path.exists():
            content = path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            os.truncate(path, len(whole))
            if whole and whole.splitlines()[0].decode() != ",".join(columns):
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

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        """Write the manifest anew."""
        self._write(MANIFEST, as_json(content))

    def manifest(self) -> dict[str, Any]:
        """Read the manifest. Raises ResultsError if this is not a folder of results."""
        try:
            found: dict[str, Any] = json.loads(self._read(MANIFEST))
        except ValueError as problem:
            raise ResultsError(f"{self.folder / MANIFEST} is not JSON: {problem}") from problem
        return found

    def summary(self) -> dict[str, Any]:
        """Read the summary that `analyse` wrote. Raises ResultsError if there is none."""
        found: dict[str, Any] = json.loads(self._read(SUMMARY))
        return found

    def write_analysis(self, summary: Mapping[str, Any], report: str) -> None:
        """Write the summary and the report."""
        self._write(SUMMARY, as_json(summary))
        self._write(REPORT, report)

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise ResultsError(f"{self.folder} is not a folder of results: no {name}") from None

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")


def as_json(content: object) -> str:
    """`content` as indented JSON, always the same for the same content."""
    return json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
