"""What a report consists of; `page` turns it into HTML, `summary` into figures for `compare`.

A cell of a table is text, a number or None (shown as –). A number is shown with three significant
digits unless its column says otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a caption. columns: headings with their unit. digits: significant ones."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    digits: int = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with what it shows in words, and its numbers as a table.

    svg: as `drawing` makes it. told: what a reader who cannot see it needs to know, one sentence.
    """

    title: str
    svg: str
    told: str
    table: Table


@dataclass(frozen=True, slots=True)
class Link:
    """A file of the result folder that a reader may open. name: of the file, beside the report.

    told: what it is, in a few words.
    """

    name: str
    told: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, paragraphs, tables and figures below them, and files that belong to it."""

    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Table | Figure] = ()
    links: Sequence[Link] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A result that can be compared between runs; low and high: its 95 % interval, if known.

    name: stable between versions, for example `response_time_mean[0.85]`. unit: "s", "1/s", "".
    """

    name: str
    value: float
    unit: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What an experiment found, in plain language first.

    failure: why its question must be answered with no, where it asks one that has an exit status.
    """

    findings: Sequence[str]
    sections: Sequence[Section]
    metrics: Sequence[Metric] = ()
    failure: str = ""


def summary(report: Report) -> dict[str, Any]:
    """The findings and metrics as JSON."""
    return {
        "findings": list(report.findings),
        "failure": report.failure,
        "metrics": [
            {"name": m.name, "value": m.value, "unit": m.unit, "low": m.low, "high": m.high}
            for m in report.metrics
        ],
    }
