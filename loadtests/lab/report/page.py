"""Makes a report one HTML file: with inline styles and SVG, without scripts or other files."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from loadtests.lab.report.content import Cell, Report, Section, Table

READ_MS, CHECK_MS = 46, 39  # of a block, by study 000
EMULATED = (
    "Emulated storage, K = {scale:g}, with the study's times of a block: 46/K ms for reading it, "
    "39/K ms for its check. {how} This tests queueing behaviour and our models; it is not a "
    "measurement of any disk or of a Raspberry Pi. Seconds in report units are {report_seconds}."
)
MODES = {
    "real": "Real: the service as shipped",
    "emulated": "Emulated storage, K = {scale:g}",
    "model": "Model: no server was measured",
}
NONE = "–"
FOLDED_ROWS = 40  # a table with more rows is folded until a reader opens it
LONG_WORDS = 60  # characters; a column with longer text is made wide enough to be read

NO_BREAK = "\N{NO-BREAK SPACE}"
_SIGNS = re.compile(r" ± | %|± ")

_HERE = Path(__file__).parent


def emulated_words(manifest: dict[str, Any], how: str, report_seconds: str) -> str:
    """The paragraph that every report of emulated storage has.

    how: the sentence that says what waited. report_seconds: the formula by which measured times are
    given in the study's seconds.
    """
    scale = manifest["scale"] or 1
    return EMULATED.format(scale=scale, how=how, report_seconds=report_seconds)


def report_page(
    title: str,
    lead: Sequence[str],
    manifest: dict[str, Any],
    report: Report,
    more: Sequence[Section],
    emulated: str,
    waited: str = "",
) -> str:
    """The report of a run. more: sections after the report's own, such as errata.

    emulated: the paragraph for emulated storage, shown if the mode is `emulated`; waited: what each
    caption then says about the waits (`Experiment.waited`).
    """
    warnings = []
    if manifest["state"] != "complete":
        warnings.append("This run was interrupted. It shows what was measured until then.")
    if manifest["quick"]:
        warnings.append("This was a quick run: everything once and briefly. It proves nothing.")
    return _rendered(
        title=title,
        lead=lead,
        mode=_mode(manifest),
        setting=_setting(manifest, waited),
        emulated=emulated if manifest["mode"] == "emulated" else "",
        warnings=warnings,
        conclusion=report.conclusion,
        findings=report.findings,
        sections=[*report.sections, *more],
        facts=_facts(manifest),
    )


def _mode(manifest: dict[str, Any]) -> str:
    return MODES[manifest["mode"]].format(scale=manifest["scale"] or 1)


def _setting(manifest: dict[str, Any], waited: str) -> str:
    """What every caption of emulated storage says: K and the waits, with three digits."""
    if manifest["mode"] != "emulated":
        return ""
    scale = manifest["scale"] or 1
    waits = waited.format(read_ms=f"{READ_MS / scale:.3g}", check_ms=f"{CHECK_MS / scale:.3g}")
    return f"{_mode(manifest)}{waits}."


def plain_page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """A page that is not about one run, such as errata or a comparison."""
    return _rendered(
        title=title,
        lead=lead,
        mode="",
        setting="",
        emulated="",
        warnings=[],
        conclusion="",
        findings=[],
        sections=sections,
        facts=[],
    )


def shown(cell: Cell, digits: int = 3) -> str:
    """A cell as text: numbers with `digits` significant digits, None as a dash.

    >>> shown(40.499375), shown(1234567.8), shown(0.00012345), shown(None), shown(12)
    ('40.5', '1,234,568', '0.000123', '–', '12')
    """
    if cell is None:
        return NONE
    if isinstance(cell, str):
        return together(cell)
    if isinstance(cell, int) or abs(cell) >= 10**digits - 0.5:
        return f"{cell:,.0f}"
    text = f"{cell:#.{digits}g}"
    return text.rstrip(".") if "e" not in text else f"{cell:.{digits - 1}e}"


def together(text: str) -> str:
    """`text` with no-break spaces, so that `5 %` and `3 ± 1` are never split between lines."""
    return _SIGNS.sub(lambda found: found[0].replace(" ", NO_BREAK), text)


def _rendered(**content: Any) -> str:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    environment.filters["together"] = together
    environment.filters["is_number"] = _is_number_column
    css = (_HERE / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        css=css, folded_rows=FOLDED_ROWS, long_words=LONG_WORDS, **content
    )


def _is_number_column(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) for cell in cells)


def _facts(manifest: dict[str, Any]) -> list[tuple[str, str]]:
    """The manifest as names and values; a nested value has its path as name.

    Of a service elsewhere, the machine that is known is that of the load generator.
    """
    told = {"machine": "machine of the generator"} if manifest.get("host") else {}
    facts = []
    for name, value in manifest.items():
        if isinstance(value, dict):
            of = told.get(name, name)
            facts += [(f"{of}: {inner}", shown_fact(v)) for inner, v in value.items()]
        else:
            facts.append((name, shown_fact(value)))
    return facts


def shown_fact(value: object) -> str:
    """A value of the manifest as text."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return NONE if value is None else str(value)
