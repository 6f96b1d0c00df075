"""Reads and writes the folder of results of a run: a manifest, tables, and files made from them.

manifest.json   experiment, mode, K, seed, versions, machine, times, and whether it is complete
*.csv           tables and raw rows, written line by line while they are measured
server.log      the servers' logs
summary.json, report.html   made by `analyse` from the above, byte for byte the same each time
"""

import csv
import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing
from io import StringIO
from pathlib import Path
from typing import Any

from loadtests.generation.run import MANIFEST
from loadtests.tables import NO, YES, Line, OneLine, TableWriter, lines_of, whole_lines

__all__ = ["MANIFEST", "NO", "REPORT", "SUMMARY", "YES", "Line", "Results", "TableWriter"]

Writing = AbstractContextManager[TableWriter[OneLine]]

SUMMARY, REPORT = "summary.json", "report.html"
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+,-]{0,119}", re.ASCII)


class ResultsError(Exception):
    """Says that a folder is not one of results, or lacks a table; the message names it."""


class NothingCounts(ResultsError):
    """Says that a folder has no run that counts of those that a report needs."""


class Results:
    """Reads and writes a folder of results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def table(self, name: str, kind: type[OneLine]) -> Writing[OneLine]:
        """Write a new table `name` (without .csv) in a `with` block. Raises FileExistsError."""
        self._path(name).touch(exist_ok=False)
        return self.more(name, kind)

    def more(self, name: str, kind: type[OneLine]) -> Writing[OneLine]:
        """Append to the table `name` in a `with` block; a torn last line of it is removed.

        It is made if it is missing. Raises TableError if the table has other columns.
        """
        return closing(TableWriter(self._path(name), kind))

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a table; every cell is text, "" if it is empty.

        A torn last line is left out. Raises ResultsError if there is no such table.
        """
        return list(csv.DictReader(self._table(name)))

    def rows_if_any(self, name: str) -> list[dict[str, str]]:
        return self.rows(name) if self.has(name) else []

    def lines(self, name: str, kind: type[OneLine]) -> list[OneLine]:
        """Return the lines of a table. Raises ResultsError without it, TableError for others."""
        return list(lines_of(kind, self._path(name), csv.reader(self._table(name))))

    def lines_if_any(self, name: str, kind: type[OneLine]) -> list[OneLine]:
        return self.lines(name, kind) if self.has(name) else []

    def file(self, name: str) -> Path:
        """Return the path of a file that a table names. Raises ResultsError for others."""
        path = self.folder / name
        if not _FILE.fullmatch(name) or path.is_symlink():
            raise ResultsError(f"{self.folder} names the file {name[:80]!a}, which it lacks")
        return path

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def _table(self, name: str) -> StringIO:
        try:
            return whole_lines(self._path(name))
        except FileNotFoundError:
            raise ResultsError(f"{self.folder} has no table {name}.csv") from None

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        self._write(MANIFEST, content)

    def write_analysis(self, summary: Mapping[str, Any], report: str) -> None:
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
            content: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            why = f"no {name}; name the folder of a single result"
            raise ResultsError(f"{self.folder} is not a folder of results: {why}") from None
        except ValueError as problem:
            raise ResultsError(f"{self.folder / name} is not JSON: {problem}") from problem
        if not isinstance(content, dict):
            raise ResultsError(f"{self.folder / name} is not of this lab: it holds no object")
        return content
