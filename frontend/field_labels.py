"""Two tables of names and meanings: the fields of a flight, and those of a block header.

The names are those of the ledger; labels and meanings are for people.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from frontend.filters import NOTHING, day, local_time, minutes, moment

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _plain(value: Any) -> str:
    return str(value)


def _weekday(value: int) -> str:
    return f"{value} ({WEEKDAYS[value - 1]})" if 1 <= value <= len(WEEKDAYS) else str(value)


def _yes_or_no(value: int) -> str:
    return "Yes" if value else "No"


@dataclass(frozen=True, slots=True)
class Field:
    """A field. name: in the ledger. label, meaning: for people. shown: makes a value a text."""

    name: str
    label: str
    meaning: str
    shown: Callable[[Any], str] = _plain


TRANSACTION = (
    Field(
        "TRANSACTION_ID", "Transaction id", "position in the ledger, counted from 0 without gaps"
    ),
    Field("timestamp", "Accepted", "when the ledger accepted the flight", moment),
    Field("YEAR", "Year", "year of the flight"),
    Field("DAY_OF_WEEK", "Weekday", "weekday of the flight, 1 is Monday", _weekday),
    Field("FL_DATE", "Day", "local day on which the flight was scheduled to leave", day),
    Field("OP_CARRIER_AIRLINE_ID", "Carrier", "number of the airline that operated the flight"),
    Field("OP_CARRIER_FL_NUM", "Flight number", "number under which the airline operated it"),
    Field("ORIGIN_AIRPORT_ID", "Origin, number", "official number of the airport of departure"),
    Field("ORIGIN", "Origin", "code of the airport of departure"),
    Field("ORIGIN_CITY_NAME", "Origin, city", "city of that airport"),
    Field("ORIGIN_STATE_NM", "Origin, state", "state of that airport"),
    Field("DEST_AIRPORT_ID", "Destination, number", "official number of the destination airport"),
    Field("DEST", "Destination", "code of the destination airport"),
    Field("DEST_CITY_NAME", "Destination, city", "city of that airport"),
    Field("DEST_STATE_NM", "Destination, state", "state of that airport"),
    Field("DEP_TIME", "Departed", "local time at which it left the gate", local_time),
    Field("DEP_DELAY", "Departure delay", "minutes after schedule; negative if early", minutes),
    Field("ARR_TIME", "Arrived", "local time at which it reached the gate", local_time),
    Field("ARR_DELAY", "Arrival delay", "minutes after schedule; negative if early", minutes),
    Field("CANCELLED", "Cancelled", "whether the flight was cancelled", _yes_or_no),
    Field("AIR_TIME", "Air time", "minutes between take-off and landing", minutes),
)
TRANSACTION_NAMES = tuple(field.name for field in TRANSACTION)

HEADER = (
    Field("version", "Format", "version of the block format"),
    Field("height", "Height", "position in the chain; the first block (genesis) has height 0"),
    Field("previous_hash", "Previous block", "hash of the block below; all zeros in block 0"),
    Field("timestamp", "Sealed", "when the block was sealed", moment),
    Field(
        "first_transaction",
        "First transaction",
        "id of its first transaction; if it has none, the next id",
    ),
    Field("transaction_count", "Transactions", "number of transactions in the block, at most 1000"),
    Field("transactions_root", "Merkle root", "fingerprint of all its transactions together"),
    Field("body_hash", "Body hash", "SHA-256 of the stored bytes, checked with every read"),
    Field("summary_root", "Summary root", "fingerprint of its totals by carrier and day"),
    Field("history_root", "History root", "fingerprint of the hashes of all blocks below"),
    Field(
        "difficulty_bits",
        "Difficulty",
        "number of zero bits with which the block's hash must begin",
    ),
    Field("nonce", "Nonce", "number that the miner varied until the hash met the difficulty"),
)
HEADER_NAMES = tuple(field.name for field in HEADER)


def canonical(record: Mapping[str, Any], fields: Collection[Field]) -> str:
    """Return the text of a record whose hash the ledger keeps: JSON as in RFC 8785.

    For integers, text and null that is sorted names and no spaces. A missing field counts as null.
    """
    values = {field.name: record.get(field.name) for field in fields}
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def in_words(fields: tuple[Field, ...], record: Mapping[str, Any]) -> Iterator[tuple[Field, str]]:
    """Yield each field, and its value in `record` as people read it."""
    for field in fields:
        value = record.get(field.name)
        yield field, NOTHING if value is None else field.shown(value)
