"""Makes a report one HTML file: with inline styles and SVG, without scripts or other files."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from loadtests.lab.content import NONE, Figure, Report, Section, Table, shown, together
from loadtests.lab.experiment import Experiment

READ_MS, CHECK_MS = 46, 39  # of a block, by study 000
EMULATED = (
    "Emulated storage, K = {scale:g}, with the study's times of a block: 46/K ms for reading it, "
    "39/K ms for its check. {how} This tests queueing behaviour and our models; it is not a "
    "measurement of any disk or of a Raspberry Pi. Seconds in report units are {report_seconds}."
)
SHARED = (
    "Measured on a machine that others share. Other programs may have taken processor time, "
    "requests may have been sent late, and the service time may have changed: the table of runs "
    "shows how much. No run was rejected for that, so other runs may say something else."
)
MODES = {
    "real": "Real: the service as shipped",
    "emulated": "Emulated storage, K = {scale:g}",
    "files": "From files of load generators",
}
FOLDED_ROWS = 40  # a table with more rows is folded until a reader opens it
LONG_WORDS = 60  # characters; a column with longer text is made wide enough to be read

_HERE = Path(__file__).parent


def report_page(
    experiment: Experiment, manifest: Mapping[str, Any], report: Report, more: Sequence[Section]
) -> str:
    """Return the page of an experiment's report. more: sections after its own, like errata.

    The conclusion comes first, then a figure and its numbers; findings do not repeat it.
    """
    mode, scale = manifest["mode"], manifest["scale"] or 1
    mode_words = MODES[mode].format(scale=scale)
    lead, warnings, emulated, setting = [experiment.about], [], "", ""
    if experiment.study:
        lead.append(f"Reproduces {experiment.reproduces} of study {experiment.study}.")
    lead.append("In tables, ± is half of a 95 % confidence interval.")
    if experiment.scales:
        how, seconds = experiment.emulated_so, experiment.report_seconds
        emulated = EMULATED.format(scale=scale, how=how, report_seconds=seconds)
        waits = {"read_ms": f"{READ_MS / scale:.3g}", "check_ms": f"{CHECK_MS / scale:.3g}"}
        setting = f"{mode_words}{experiment.waited.format(**waits)}."
    if manifest["state"] != "complete":
        problem = manifest.get("problem")
        ended = f"ended with an error ({problem.rstrip('.')})" if problem else "was interrupted"
        warnings.append(f"This run {ended}. It shows what was measured until then.")
    if manifest.get("shared"):
        warnings.append(SHARED)
    if manifest["quick"]:
        warnings.append("This was a quick run: everything once and briefly. It proves nothing.")
    conclusion = report.conclusion or next(iter(report.findings), "")
    parts = chain.from_iterable(section.parts for section in report.sections)
    return plain_page(
        experiment.title,
        lead,
        [*report.sections, *more],
        mode=mode_words,
        setting=setting,
        emulated=emulated,
        warnings=warnings,
        conclusion=conclusion,
        findings=[words for words in dict.fromkeys(report.findings) if words != conclusion],
        first_figure=next((part for part in parts if isinstance(part, Figure)), None),
        facts=list(_facts(manifest)),
    )


_OF_A_RUN = (
    *("mode", "setting", "emulated", "warnings", "conclusion", "findings", "first_figure"),
    "facts",
)


def plain_page(
    title: str, lead: Sequence[str], sections: Sequence[Section], **of_a_run: object
) -> str:
    """Return a page such as a comparison. of_a_run: what a page about a run has besides."""
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "together": together, "is_number": _is_number_column}
    return environment.get_template("page.html").render(
        dict.fromkeys(_OF_A_RUN, "") | of_a_run,
        title=title,
        lead=lead,
        sections=sections,
        css=(_HERE / "page.css").read_text(encoding="utf-8"),
        folded_rows=FOLDED_ROWS,
        long_words=LONG_WORDS,
    )


def _is_number_column(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _facts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the manifest; a nested value has its path as name.

    Of a service elsewhere, the machine that is known is that of the load generator.
    """
    titles = {"machine": "machine of the generator"} if manifest.get("host") else {}
    for name, value in manifest.items():
        nested = value if isinstance(value, dict) else {"": value}
        for inner, fact in nested.items():
            path = f"{titles.get(name, name)}: {inner}" if inner else name
            text = ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
            yield path, NONE if fact is None else text
