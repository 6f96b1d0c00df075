"""What a file was taken for, as a page shows it before anything is added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.adding.columns import COLUMNS
from frontend.filters import counted

SHOWN_ROWS = 3
SHOWN_TITLES = 3


@dataclass(frozen=True, slots=True)
class UnderstoodField:
    """A field of a flight. origin: where it comes from in the file. values: those of some rows."""

    name: str
    origin: str
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Understanding:
    """What a file was taken for.

    kind, source: its kind, and where people get it. dates: how its days are written, as the backend
    names it; None if it has none, or none that tells. dates_written: the same in words. not_used:
    titles of columns that mean nothing. notes: what was left out or emptied. fields: in the order
    of a record.
    """

    kind: str
    source: str
    dates: str | None
    dates_written: str | None
    emptied: Mapping[str, int]
    repeated_headers: int
    not_used: Sequence[str]
    fields: Sequence[UnderstoodField]

    @property
    def notes(self) -> list[str]:
        """Sentences on how it was read."""
        notes = [f"Days are written {self.dates_written}."] if self.dates_written else []
        notes += [
            f"{counted(count, 'cell')} of {name} {_was(count)} emptied, because what stood "
            "there means nothing."
            for name, count in self.emptied.items()
        ]
        if count := self.repeated_headers:
            verb = "repeats" if count == 1 else "repeat"
            notes.append(
                f"{counted(count, 'line')} {_was(count)} left out, which {verb} the header."
            )
        if titles := self.not_used:
            more = len(titles) - SHOWN_TITLES
            shown = [*titles[:SHOWN_TITLES], *([f"{more} more"] if more > 0 else [])]
            notes.append(f"Not used: {', '.join(shown)}.")
        return notes


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def understanding_of(answer: Mapping[str, Any]) -> Understanding:
    """Return what an answer of the backend says that it took a file for."""
    derived = {
        name: f"from {what}"
        for what, names in answer["derived"].items()
        for name in names.split(", ")
    }
    origins = derived | answer["columns"] | dict.fromkeys(answer["left_empty"], "stays empty")
    rows = answer.get("sample", ())[:SHOWN_ROWS]
    fields = [
        UnderstoodField(c.name, origins.get(c.name, ""), [row[c.name] for row in rows])
        for c in COLUMNS
    ]
    names = ("kind", "source", "dates", "dates_written", "emptied", "repeated_headers", "not_used")
    return Understanding(fields=fields, **{name: answer[name] for name in names})
