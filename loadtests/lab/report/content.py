"""The parts of a report, and words for them.

`page` turns them into HTML, `summary` into figures for `compare`. A cell of a table is text, a
number or None (shown as –). A number is shown with three significant digits unless its column says
otherwise.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

Cell = str | int | float | None
Item = TypeVar("Item")
Column = tuple[str, Callable[[Item], Cell]]  # the heading, and the cell of an item


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a caption. columns: headings with their units. digits: number of significant ones.

    note: a sentence below the table.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    digits: int = 3

    @classmethod
    def of(
        cls,
        caption: str,
        items: Iterable[Item],
        columns: Sequence[Column[Item]],
        note: str = "",
        digits: int = 3,
    ) -> "Table":
        """A table with a row for each item, whose cells stand beside their headings."""
        rows = [[cell(item) for _, cell in columns] for item in items]
        return cls(caption, [heading for heading, _ in columns], rows, note, digits)


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing, with its content in words and its numbers as a table.

    svg: from `drawing`. told: one sentence for readers who cannot see the drawing.
    """

    title: str
    svg: str
    told: str
    table: Table


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: a heading, paragraphs, tables and figures, and links.

    links: names of files of the result folder, and what is in them, in words.
    """

    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Table | Figure] = ()
    links: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A result that can be compared between runs. low, high: its 95 % interval, if known.

    name: never changes, for example `response_time_mean[0.85]`. unit: "s", "1/s" or "".
    """

    name: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The results of an experiment. findings: sentences in plain language.

    failure: why the experiment answers its question with no, which makes the exit status 1.
    conclusion: what it comes to, in one sentence; the first finding if it is left out.
    """

    findings: Sequence[str]
    sections: Sequence[Section]
    metrics: Sequence[Metric] = ()
    failure: str = ""
    conclusion: str = ""


def summary(report: Report) -> dict[str, Any]:
    """The findings and metrics as JSON."""
    return {
        "conclusion": report.conclusion,
        "findings": list(report.findings),
        "failure": report.failure,
        "metrics": [asdict(metric) for metric in report.metrics],
    }


def capital(text: str) -> str:
    """`text` with a capital first letter; other letters stay as they are."""
    return text[:1].upper() + text[1:]


def told_s(seconds: float) -> str:
    """A time as text: in seconds, or in milliseconds if it is less than one."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def times(factor: float, value: float | None) -> float | None:
    """`factor` times a value that may be missing."""
    return None if value is None else factor * value
