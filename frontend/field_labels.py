"""The fields of a flight, and those of a block header, as people read them; and all other texts.

The names are those of the ledger.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from frontend.filters import NOTHING, day, local_time, minutes, moment

TEXTS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("texts.toml").read_text("utf-8"))
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Field(NamedTuple):
    """A field. name: in the ledger. label, meaning: for people."""

    name: str
    label: str
    meaning: str


TRANSACTION_FIELDS = [Field(*row) for row in TEXTS["transaction_fields"]]
HEADER_FIELDS = [Field(*row) for row in TEXTS["header_fields"]]
TRANSACTION_NAMES = tuple(field.name for field in TRANSACTION_FIELDS)
HEADER_NAMES = tuple(field.name for field in HEADER_FIELDS)


def _weekday(value: int) -> str:
    return f"{value} ({WEEKDAYS[value - 1]})" if 1 <= value <= len(WEEKDAYS) else str(value)


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "timestamp": moment,
    "DAY_OF_WEEK": _weekday,
    "FL_DATE": day,
    **dict.fromkeys(("DEP_TIME", "ARR_TIME"), local_time),
    **dict.fromkeys(("DEP_DELAY", "ARR_DELAY", "AIR_TIME"), minutes),
    "CANCELLED": lambda value: "Yes" if value else "No",
}


def canonical(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the text of a record whose hash the ledger keeps: JSON as in RFC 8785.

    For integers, text and null that is sorted names and no spaces. A missing field counts as null.
    """
    values = {name: record.get(name) for name in names}
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def in_words(fields: Sequence[Field], record: Mapping[str, Any]) -> Iterator[tuple[Field, str]]:
    """Yield each field, and its value in `record` as people read it."""
    for field in fields:
        value = record.get(field.name)
        yield field, NOTHING if value is None else _SHOWN.get(field.name, str)(value)
