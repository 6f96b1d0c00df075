"""Writes the generated parts of the documents: routes, settings, command line, measurements.

    .venv/bin/python -m tests.reference

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`. A test fails when one is not as
the code says.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import click
from werkzeug.http import HTTP_STATUS_CODES

from backend.api import Service
from backend.api.specification import PROBLEMS, path_of
from backend.base.settings import Settings
from backend.base.words import COMMAND
from backend.cli.commands import main as command_line
from backend.index.views import VIEWS, statements
from backend.sources.kinds import KINDS as KINDS_OF_FILES
from backend.sources.kinds import Reading
from backend.verify.folder_files import KINDS, LET_IT_BE
from frontend.field_labels import TEXTS
from loadtests.bench import growth_curves
from loadtests.bench.measurements import markdown, read
from tests.settings_table import table

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs"
MEASUREMENTS, GROWTH = FOLDER / "performance.json", FOLDER / "growth.json"
PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def routes() -> Iterator[str]:
    """Yields lines of the table of routes."""
    yield from ("| Call | Answer |", "|---|---|")
    for row in Service(Settings()).table:
        operation = row.operation
        names = [(parameter.name, parameter.required) for parameter in operation.parameters]
        required = "&".join(f"{name}=" for name, is_required in names if is_required)
        optional = "&".join(f"{name}=" for name, is_required in names if not is_required)
        query = f"?{required}" if required else ""
        if optional:
            query += f"[{'&' if required else '?'}{optional}]"
        answers = operation.answers
        meanings = " ".join(
            f"{status}: {answer.meaning}" if len(answers) > 1 else answer.meaning
            for status, answer in answers.items()
        )
        end = "" if operation.summary.endswith("?") else "."
        text = f"{operation.summary}{end} {meanings}".replace("|", "\\|")
        yield f"| `{row.method} {path_of(row.rule)}{query}` | {text} |"


def settings() -> Iterator[str]:
    """Yields lines of the table of settings."""
    yield from ("| Variable | Default | Unit | Meaning |", "|---|---|---|---|")
    for name, default, unit, reason in table():
        yield f"| `{name}` | `{default}` | {unit} | {reason} |"


def commands() -> Iterator[str]:
    """The help of each command of `python -m backend`."""
    yield from _help_of(command_line, "python -m backend")


def _help_of(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[str]:
    names = parent.help_option_names if parent else command.context_settings["help_option_names"]
    command._help_option = None  # click keeps that of a test which called it without its parent
    context = click.Context(command, info_name=name, terminal_width=100, help_option_names=names)
    yield from (f"## `{name}`", "", "```", command.get_help(context), "```", "")
    inner_ones = command.commands.values() if isinstance(command, click.Group) else ()
    for inner in (each for each in inner_ones if not each.hidden):
        yield from _help_of(inner, f"{name} {inner.name}", context)


def files() -> Iterator[str]:
    """Yields lines of the table of the files in a ledger's folder."""
    yield from (
        "| File | What it is | Written by | If it is lost | Remedy |",
        "|---|---|---|---|---|",
    )
    for kind in KINDS:
        remedy = "written again" if kind.remedy == LET_IT_BE else kind.remedy
        cells = (f"`{kind.pattern}`", kind.what, kind.writer, kind.if_lost, remedy)
        yield f"| {' | '.join(cells)} |".replace(COMMAND, "python -m backend")


def errors() -> Iterator[str]:
    """Yields lines of the table of statuses with which problems are answered."""
    yield from ("| Status | What it means |", "|---|---|")
    for status, answer in PROBLEMS.items():
        yield f"| {status} {HTTP_STATUS_CODES[status]} | {answer.meaning} |"


def kinds() -> Iterator[str]:
    """Yields lines of the table of the kinds of files."""
    yield from ("| Kind | Where from | Columns | Derived |", "|---|---|---|---|")
    above: list[str] = []
    for kind in KINDS_OF_FILES:
        titles = [title for _, title in kind.pairs]
        reading = Reading(
            kind, {meaning: n for n, (meaning, _) in enumerate(kind.pairs)}, titles, {}
        )
        derived = "; ".join(f"{fields} from {what}" for what, fields in reading.derivations.items())
        columns = "as above" if titles == above else " ".join(titles)
        above = titles
        yield f"| {kind.name} | {kind.source} | {columns} | {derived} |"


def refused() -> Iterator[str]:
    """Yields lines of the table of files that are refused, which a page has, too."""
    yield from ("| File | What to do |", "|---|---|")
    for row in TEXTS["refused_files"]:
        yield f"| {' | '.join(row)} |"


def views() -> Iterator[str]:
    """Yields lines of the table of the index's views."""
    yield from ("| View | Columns |", "|---|---|")
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute((ROOT / "backend/index/schema.sql").read_text(encoding="utf-8"))
        connection.execute(statements())
        for name in VIEWS:
            columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
            yield f"| `{name}` | {' '.join(str(column[1]) for column in columns)} |"


def measurements(numbers: Sequence[int]) -> Iterator[str]:
    """Yields lines of the table of what these rows of `scripts/bench` have measured."""
    rows = read(MEASUREMENTS)
    yield from markdown([row for row in rows if row.number in numbers])


def growth() -> Iterator[str]:
    """Yields lines of the table of what `scripts/bench --growth` has measured."""
    yield from growth_curves.markdown(json.loads(GROWTH.read_text(encoding="utf-8")))


MEASURED: Mapping[str, Sequence[int]] = {
    "measured": (2, 3, 4, 5, 6, 7, 9, 11, 12, 17),
    "measured_front": (13,),
    "measured_proofs": (14,),
    "measured_groups": (15,),
    "measured_cluster": (16,),
}
"""The rows of `scripts/bench` in each table of measurements."""

PARTS: Mapping[str, Callable[[], Iterator[str]]] = {
    "routes": routes,
    "settings": settings,
    "commands": commands,
    "files": files,
    "errors": errors,
    "kinds": kinds,
    "refused": refused,
    "views": views,
    "growth": growth,
    **{name: partial(measurements, numbers) for name, numbers in MEASURED.items()},
}


def with_parts(text: str) -> str:
    """`text` with each generated part as the code says."""
    return PART.sub(lambda match: f"{match[1]}{chr(10).join(PARTS[match[2]]())}\n{match[3]}", text)


def main() -> None:
    """Write the files whose parts have changed."""
    for path in sorted(FOLDER.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        if (after := with_parts(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
