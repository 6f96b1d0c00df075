"""Defines the parts of a report, and writes numbers as text.

`page` turns them into HTML, `summary` into JSON. A cell of a table is text, a
number, a mean with its interval, or None (shown as –). A number is shown with three significant
digits unless its table says otherwise, and half the width of an interval with two.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, TypeVar

from loadtests.models.estimates import Interval
from loadtests.number_format import format_number

NONE = "–"
NO_BREAK = "\N{NO-BREAK SPACE}"
_SIGNS = re.compile(r" ± | %|± ")

Cell = str | int | float | Interval | None
Item = TypeVar("Item")
Column = tuple[str, Callable[[Item], Cell]]  # the heading, and the cell of an item


@dataclass(frozen=True, slots=True)
class Table:
    """Shows rows under a caption."""

    caption: str
    columns: Sequence[str]  # headings with their units
    rows: Sequence[Sequence[Cell]]
    note: str = ""  # a sentence below the table
    digits: int = 3  # number of significant ones
    is_folded: bool = False  # until a reader opens it

    @classmethod
    def from_items(
        cls,
        caption: str,
        items: Iterable[Item],
        columns: Sequence[Column[Item]],
        note: str = "",
        digits: int = 3,
    ) -> "Table":
        """Return a table with a row for each item, whose cells stand beside their headings."""
        rows = [[cell(item) for _, cell in columns] for item in items]
        return cls(caption, [heading for heading, _ in columns], rows, note, digits)


@dataclass(frozen=True, slots=True)
class Figure:
    """Shows a drawing, its content in words and its numbers as a table."""

    title: str
    svg: str  # from `drawing`
    caption: str  # one sentence for readers who cannot see the drawing
    table: Table


@dataclass(frozen=True, slots=True)
class Section:
    """Holds a part of a report: a heading, paragraphs, tables and figures, and links."""

    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Table | Figure] = ()
    links: Sequence[tuple[str, str]] = ()  # files of the result folder, and what is in them


@dataclass(frozen=True, slots=True)
class Metric:
    """Holds a result for programs. low, high: its 95 % interval, if known."""

    name: str  # never changes, for example `response_time_mean[0.85]`
    value: float
    unit: str = ""  # or "s", "1/s"
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_amount(cls, name: str, amount: Interval, unit: str = "") -> "Metric":
        """Return the result of an amount, whose interval begins at 0 or above.

        The interval of a mean is symmetric, and with few runs it may reach below 0.
        """
        low, high = amount.ends
        return cls(name, amount.estimate, unit, None if low is None else max(0.0, low), high)


@dataclass(frozen=True, slots=True)
class Report:
    """Holds the results of an experiment."""

    findings: Sequence[str]  # sentences in plain language
    sections: Sequence[Section]
    metrics: Sequence[Metric] = ()
    failure: str = ""  # why it answers its question with no, which makes the exit status 1
    conclusion: str = ""  # what it comes to, in one sentence; the first finding if left out


def summary(report: Report) -> dict[str, Any]:
    """Return all but the sections as plain data for JSON."""
    content = asdict(replace(report, sections=()))
    del content["sections"]
    return content


def capital(text: str) -> str:
    """Return `text` with a capital first letter; other letters stay as they are."""
    return text[:1].upper() + text[1:]


def format_time(seconds: float) -> str:
    """Return a time as text: in seconds, or in milliseconds if it is less than a second."""
    if seconds < 0.9995:  # more would be rounded to 1000 ms
        return f"{format_number(1000 * seconds)} ms"
    return f"{format_number(seconds)} s"


def times(factor: float, value: float | None) -> float | None:
    """Return `factor` times a value that may be missing."""
    return None if value is None else factor * value


def shown(cell: Cell, digits: int = 3) -> str:
    """Return a cell as text: numbers with `digits` significant digits, None as a dash.

    >>> shown(40.499375), shown(1234567.8), shown(0.00012345), shown(None), shown(12)
    ('40.5', '1,234,568', '0.000123', '–', '12')
    """
    if isinstance(cell, Interval):
        half = "" if cell.half_width == inf else f" ± {shown(cell.half_width, 2)}"
        return together(shown(cell.estimate, digits) + half)
    if cell is None:
        return NONE
    if isinstance(cell, str):
        return together(cell)
    if isinstance(cell, int) or abs(cell) >= 10**digits - 0.5:
        return f"{cell:,.0f}"
    text = f"{cell:#.{digits}g}"
    return text.rstrip(".") if "e" not in text else f"{cell:.{digits - 1}e}"


def together(text: str) -> str:
    """Return `text` with no-break spaces, so that lines never split `5 %` and `3 ± 1`."""
    return _SIGNS.sub(lambda match: match[0].replace(" ", NO_BREAK), text)
