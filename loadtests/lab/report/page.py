"""Makes a report one HTML file: with inline styles and SVG, without scripts or other files."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from loadtests.lab.content import Figure, Report, Section, Table, shown, together
from loadtests.lab.experiment import Experiment

FOLDED_ROWS = 40  # a table with more rows is folded until a reader opens it
LONG_WORDS = 60  # characters; a column with longer text is made wide enough to be read

_HERE = Path(__file__).parent


def report_page(
    experiment: Experiment, manifest: Mapping[str, Any], report: Report, more: Sequence[Section]
) -> str:
    """Return the page of an experiment's report. more: sections after its own, like errata.

    The conclusion comes first, then a figure and its numbers; findings do not repeat it.
    """
    conclusion = report.conclusion or next(iter(report.findings), "")
    parts = chain.from_iterable(section.parts for section in report.sections)
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "together": together, "is_number": _is_number_column}
    return environment.get_template("page.html").render(
        experiment=experiment,
        manifest=manifest,
        conclusion=conclusion,
        findings=[words for words in dict.fromkeys(report.findings) if words != conclusion],
        first_figure=next((part for part in parts if isinstance(part, Figure)), None),
        sections=[*report.sections, *more],
        css=(_HERE / "page.css").read_text(encoding="utf-8"),
        folded_rows=FOLDED_ROWS,
        long_words=LONG_WORDS,
    )


def _is_number_column(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)
