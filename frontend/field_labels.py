"""The fields of a flight, and those of a block header: their names, and their values for people.

The names are those of the ledger; labels and meanings are in the texts.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from frontend.context import texts
from frontend.filters import NOTHING, day, local_time, minutes, moment

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TRANSACTION_NAMES: tuple[str, ...] = (
    *("TRANSACTION_ID", "timestamp", "YEAR", "DAY_OF_WEEK", "FL_DATE", "OP_CARRIER_AIRLINE_ID"),
    *("OP_CARRIER_FL_NUM", "ORIGIN_AIRPORT_ID", "ORIGIN", "ORIGIN_CITY_NAME", "ORIGIN_STATE_NM"),
    *("DEST_AIRPORT_ID", "DEST", "DEST_CITY_NAME", "DEST_STATE_NM", "DEP_TIME", "DEP_DELAY"),
    *("ARR_TIME", "ARR_DELAY", "CANCELLED", "AIR_TIME"),
)
HEADER_NAMES = (
    *("version", "height", "previous_hash", "timestamp", "first_transaction", "transaction_count"),
    *("transactions_root", "body_hash", "summary_root", "history_root", "difficulty_bits", "nonce"),
)


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


class Field(NamedTuple):
    """A field. name: in the ledger. label, meaning: for people."""

    name: str
    label: str
    meaning: str


def fields(kind: str) -> list[Field]:
    """Return the fields of a "transaction" or a "header"."""
    return [Field(*row) for row in texts(f"{kind}_fields")]


def canonical(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the text of a record whose hash the ledger keeps: JSON as in RFC 8785.

    For integers, text and null that is sorted names and no spaces. A missing field counts as null.
    """
    values = {name: record.get(name) for name in names}
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def in_words(kind: str, record: Mapping[str, Any]) -> Iterator[tuple[Field, str]]:
    """Yield each field, and its value in `record` as people read it."""
    for field in fields(kind):
        value = record.get(field.name)
        yield field, NOTHING if value is None else _SHOWN.get(field.name, str)(value)
