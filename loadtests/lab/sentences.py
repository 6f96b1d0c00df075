"""Makes sentences of reports from templates: a text file of named parts for each experiment.

A part begins with a line `# name`, and is a Jinja template. Paragraphs are parted by blank lines,
so that a loop gives one sentence or paragraph for each item; an empty one is left out.

    sentences = Sentences("open_workload")
    Report(findings=sentences("findings", points=points), …)
"""

import re
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from loadtests.lab.content import capital, format_time, shown
from loadtests.models.estimates import TOLERANCE
from loadtests.number_format import format_number

FOLDER = Path(__file__).parents[1] / "experiments" / "sentences"
_PART = re.compile(r"^# (\w+)$", re.MULTILINE)

_ENVIRONMENT = Environment(  # noqa: S701  plain text, which the page escapes
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
_ENVIRONMENT.globals["tolerance"] = f"{100 * TOLERANCE:g} %"
_ENVIRONMENT.filters |= {
    "capital": capital,
    "shown": shown,
    "time": format_time,  # 1.2 s, or 120 ms
    "shown_ms": lambda seconds: f"{shown(1000 * seconds)} ms",
    "ms": lambda seconds, spec=".3g": f"{format_number(1000 * seconds, spec)} ms",
    "percent": lambda share, spec=".0f": f"{100 * share:{spec}} %",
    "as": format_number,  # {{ x|as(".3g") }}
}


class Sentences:
    """Makes the sentences of an experiment."""

    def __init__(self, name: str) -> None:
        """Read the templates. name: of their file, without the suffix. Raises OSError."""
        text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        names, parts = _PART.findall(text), _PART.split(text)[2::2]
        self.parts = {
            part: _ENVIRONMENT.from_string(body) for part, body in zip(names, parts, strict=True)
        }

    def __call__(self, part: str, **values: object) -> list[str]:
        """Return the paragraphs of a part. Raises KeyError, jinja2.UndefinedError for a value."""
        paragraphs = re.split(r"\n\s*\n", self.parts[part].render(values))
        return [words for text in paragraphs if (words := re.sub(r"[ \n]+", " ", text).strip(" "))]

    def rows(self, part: str, **values: object) -> list[list[str]]:
        """Return the lines of a part as rows of a table, whose cells are parted by bars."""
        lines = filter(None, self.parts[part].render(values).splitlines())
        return [line.split(" | ") for line in lines]

    def paragraph(self, part: str, **values: object) -> str:
        """Return the only paragraph of a part; "" if it is empty. Raises ValueError for several."""
        paragraphs = self(part, **values)
        if len(paragraphs) > 1:
            raise ValueError(f"{part} has {len(paragraphs)} paragraphs, not one")
        return "".join(paragraphs)


def drawing(name: str, **values: object) -> str:
    """Return an SVG element, from the template of this name. Raises OSError."""
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    return _ENVIRONMENT.from_string(text).render(values).replace("\n", " ").strip()
