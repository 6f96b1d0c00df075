"""Writes and reads tables: CSV files (RFC 4180) whose lines are dataclasses.

A field is of text, a finite number, such a number or None (an empty cell), or a bool (yes or no).
Each line is handed to the system when it is written, so lines survive whatever ends a run. One that
was cut off then is not a line: readers leave it out, and it is removed before more are appended.
"""

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from io import StringIO
from pathlib import Path
from types import UnionType
from typing import Any, Generic, TextIO, TypeVar, cast

from loadtests.number_format import finite

YES, NO = "yes", "no"  # how a bool stands in a table

Made = TypeVar("Made")


class TableError(ValueError):
    """Says that a file is not a table of the kind that is wanted; the message names it."""


class Line:
    """Makes a dataclass a line of a table, whose columns are its fields."""

    __slots__: tuple[str, ...] = ()

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        return tuple(types_of(cls))

    def cells(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.columns()}


OneLine = TypeVar("OneLine", bound=Line)


class TableWriter(Generic[OneLine]):
    """Appends lines of a kind to a table; they are handed to the system when `add` returns."""

    def __init__(self, path: Path, kind: type[OneLine], decimals: int | None = None) -> None:
        """Open the table, as `to_append` does. decimals: of numbers; None keeps all digits."""
        self._columns, self._decimals = kind.columns(), decimals
        self._stream = to_append(path, self._columns)
        self._writer = csv.writer(self._stream)

    def add(self, *lines: OneLine) -> None:
        """Append lines; None becomes an empty cell."""
        for line in lines:
            cells = (cell(getattr(line, name), self._decimals) for name in self._columns)
            self._writer.writerow(cells)

    def close(self) -> None:
        self._stream.close()


def cell(value: object, decimals: int | None = None) -> object:
    """Return a value as it is written. decimals: of a float; None keeps all its digits."""
    if isinstance(value, bool):
        return YES if value else NO
    if isinstance(value, float):
        return repr(value) if decimals is None else f"{value:.{decimals}f}"
    return value


def to_append(path: Path, columns: Sequence[str]) -> TextIO:
    """Open a table to append lines to, with a header if it is new, and without a torn last line.

    Raises OSError, and TableError if the file has other columns.
    """
    header = ",".join(columns).encode()
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    is_known = whole.splitlines()[0] == header if whole else (header + b"\r").startswith(content)
    if not is_known:
        raise TableError(
            f"{path} has other columns than {','.join(columns)}, so nothing can be added to it; "
            "begin anew, with a new file or folder"
        )
    if whole != content:
        os.truncate(path, len(whole))
    stream = path.open("a", encoding="utf-8", newline="", buffering=1)
    if not whole:
        csv.writer(stream).writerow(columns)
    return stream


def whole_lines(path: Path, offset: int = 0) -> StringIO:
    """Return the text of a table from this byte on, without a torn last line."""
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read()
    return StringIO(content[: content.rfind(b"\n") + 1].decode("utf-8"), newline="")


def lines_of(
    kind: type[Made], path: Path, rows: Iterable[Sequence[str]], header: Sequence[str] | None = None
) -> Iterator[Made]:
    """Yield the rows of a table as dataclasses of a kind, without columns that it has no field for.

    header: names of the columns; None: they are the first row. Raises TableError for a column that
    is missing and a row that is no line; what has a default may be missing.
    """
    table = iter(rows)
    names = list(next(table, ()) if header is None else header)
    types = types_of(kind)
    defaults = {field.name for field in fields(cast("Any", kind)) if field.default is not MISSING}
    if missing := [name for name in types if name not in {*names, *defaults}]:
        raise TableError(f"{path} has no column {missing[0]}; it has {', '.join(names)}")
    places = [(name, names.index(name), parser(types[name])) for name in types if name in names]
    required = 1 + max((at for name, at, _ in places if name not in defaults), default=-1)
    for row in filter(None, table):
        column, values = "number of cells", dict[str, Any]()
        try:
            if not required <= len(row) <= len(names):
                raise ValueError(f"{len(row)} for {len(names)} columns")
            for column, at, parsed in places:
                if at < len(row):
                    values[column] = parsed(row[at])
        except ValueError as problem:
            message = f"{path}: {row} is not a {kind.__name__}, {column}: {problem}"
            raise TableError(message) from problem
        yield kind(**values)


def types_of(kind: type) -> Mapping[str, Any]:
    return {field.name: field.type for field in fields(cast("Any", kind))}


def parser(kind: Any) -> Callable[[str], Any]:
    """Return the function from a cell to a value of this type, which raises ValueError."""
    if kind is bool:
        return lambda text: text == YES
    if isinstance(kind, UnionType):  # a number or None
        number = parser(kind.__args__[0])
        return lambda text: number(text) if text else None
    return finite if kind is float else cast("Callable[[str], Any]", kind)
