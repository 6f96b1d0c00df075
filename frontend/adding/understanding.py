"""What a file was taken for, as a page shows it before anything is added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.field_labels import TRANSACTION_NAMES

SHOWN_ROWS = 3
NOT_IN_FILES = {"TRANSACTION_ID", "timestamp"}


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
    titles of columns that mean nothing. fields: in the order of a record.
    """

    kind: str
    source: str
    dates: str | None
    dates_written: str | None
    emptied: Mapping[str, int]
    repeated_headers: int
    not_used: Sequence[str]
    fields: Sequence[UnderstoodField]


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
        UnderstoodField(name, origins.get(name, ""), [row[name] for row in rows])
        for name in TRANSACTION_NAMES
        if name not in NOT_IN_FILES
    ]
    names = ("kind", "source", "dates", "dates_written", "emptied", "repeated_headers", "not_used")
    return Understanding(fields=fields, **{name: answer[name] for name in names})
