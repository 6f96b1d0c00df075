"""Makes a report one HTML file: with inline styles and SVG, without scripts or other files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from loadtests.lab.content import NONE, Figure, Report, Section, Table, shown, together
from loadtests.lab.experiment import Experiment, Mode

READ_MS, CHECK_MS = 46, 39  # of a block, by study 000
EMULATED = (
    "Emulated storage, K = {scale:g}, with the study's times of a block: 46/K ms for reading it, "
    "39/K ms for its check. {how} This tests queueing behaviour and our models; it is not a "
    "measurement of any disk or of a Raspberry Pi. Seconds in report units are {report_seconds}."
)
SHARED = (
    "Measured on a machine that others share. Other programs may have taken processor time, "
    "requests may have been sent late, and the service time may have changed: the table of runs "
    "has how much. No run was rejected for that, so other runs may say something else."
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
    found: Experiment, manifest: Mapping[str, Any], report: Report, more: Sequence[Section]
) -> str:
    """The report of a run of an experiment. more: sections after the report's own, like errata.

    The conclusion comes first, then a figure and its numbers; findings do not repeat it.
    """
    mode, scale = manifest["mode"], manifest["scale"] or 1
    told = MODES[mode].format(scale=scale)
    lead, warnings, emulated, setting = [found.about], [], "", ""
    if found.study:
        lead.append(f"Reproduces {found.reproduces} of study {found.study}.")
    if mode == Mode.EMULATED:
        how, seconds = found.emulated_so, found.report_seconds
        emulated = EMULATED.format(scale=scale, how=how, report_seconds=seconds)
        waits = {"read_ms": f"{READ_MS / scale:.3g}", "check_ms": f"{CHECK_MS / scale:.3g}"}
        setting = f"{told}{found.waited.format(**waits)}."
    if manifest["state"] != "complete":
        warnings.append("This run was interrupted. It shows what was measured until then.")
    if manifest.get("shared"):
        warnings.append(SHARED)
    if manifest["quick"]:
        warnings.append("This was a quick run: everything once and briefly. It proves nothing.")
    conclusion = report.conclusion or next(iter(report.findings), "")
    figures = (part for of in report.sections for part in of.parts if isinstance(part, Figure))
    return plain_page(
        found.title,
        lead,
        [*report.sections, *more],
        mode=told,
        setting=setting,
        emulated=emulated,
        warnings=warnings,
        conclusion=conclusion,
        findings=[one for one in dict.fromkeys(report.findings) if one != conclusion],
        first_figure=next(figures, None),
        facts=list(_facts(manifest)),
    )


_OF_A_RUN = (
    *("mode", "setting", "emulated", "warnings", "conclusion", "findings", "first_figure"),
    "facts",
)


def plain_page(
    title: str, lead: Sequence[str], sections: Sequence[Section], **of_a_run: object
) -> str:
    """A page such as errata or a comparison. of_a_run: what one about a run has besides."""
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
    """The manifest as names and values; a nested value has its path as name.

    Of a service elsewhere, the machine that is known is that of the load generator.
    """
    told = {"machine": "machine of the generator"} if manifest.get("host") else {}
    for name, value in manifest.items():
        nested = value if isinstance(value, dict) else {"": value}
        for inner, fact in nested.items():
            path = f"{told.get(name, name)}: {inner}" if inner else name
            text = ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
            yield path, NONE if fact is None else text
