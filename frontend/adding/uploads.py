"""Sends a file of flights, or a slice of one, to the ledger, and says what came of it.

Rows are numbered by their lines, from 1 and with the header, as the backend does. A row is one
line: a quoted cell cannot go over several.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from os import SEEK_END
from typing import IO, Any

from frontend.backend_client import Backend, Json
from frontend.bodies import ANY_FILE
from frontend.errors import Refused
from frontend.field_labels import TRANSACTION_NAMES
from frontend.filters import short_interval

CLOCKS_AGREE_S = 1.0
EMPTY = "It is empty; download it again."
DAY_ORDERS = ("month-first", "day-first")  # as the backend names them
# "body, line 7: line b'…': is longer than …"; the quoted text may be cut, and then has no end.
_problem = re.compile(
    r"body(?:, line (?P<line>\d+): (?P<field>\w+))? "
    r"(?P<value>b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|['\"].*?…)): (?P<reason>.*)",
    re.DOTALL,
)
SHOWN_ROWS = 3
MOST_BAD = 0.01  # of the rows of a file, that are left out without being asked; as in an import
NOT_IN_FILES = {"TRANSACTION_ID", "timestamp"}
SHOWN = ("kind", "source", "dates", "dates_written", "emptied", "repeated_headers", "not_used")


class Unreadable(Exception):
    """No row of a file can be accepted. line: where that begins; None if it is not known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class DoubtfulDays(Exception):
    """The days of a file may be read in two ways.

    day: one of them, as it stands in the file. meanings: order -> the day that it then is.
    """

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.detail)
        self.day = refused.value
        self.meanings = {order: short_interval(day, day) for order, day in refused.readings.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Says what the ledger has of rows.

    good, bad: how many are flights, how many are not. bad_cancelled, bad_not_arrived: how many of
    the bad ones are of flights that were cancelled, or did not arrive otherwise. bad_rows: the
    first bad ones, each with `row`, `field`, `value`, `detail`. there: how many of the good ones
    are left out because the ledger has them, the first of them as transaction `there_as` (if the
    rows are only checked).
    conflicts: how many are left out because they contradict what the ledger says of the flight;
    conflicting: the first of these, as the backend shows them. added: how many of the good ones
    were added, with the ids `first` to `last` (None while a cluster has
    not given them), since `timestamp` (UTC milliseconds). receipts: addresses of those of the first
    and the last. before: how many of these were there already, because the same file was sent
    before. understood: what the file was taken for.
    """

    good: int
    bad: int
    bad_rows: Sequence[Mapping[str, Any]]
    bad_cancelled: int = 0
    bad_not_arrived: int = 0
    there: int = 0
    there_as: int | None = None
    conflicts: int = 0
    conflicting: Sequence[Mapping[str, Any]] = ()
    added: int = 0
    before: int = 0
    first: int | None = None
    last: int | None = None
    receipts: tuple[str, str] | None = None
    timestamp: int | None = None
    understood: Json | None = None

    @property
    def share_bad(self) -> float:
        """Return the share of its rows that are bad."""
        return self.bad / max(1, self.good + self.bad)

    @property
    def is_doubtful(self) -> bool:
        """Return whether so many are that the good ones may be right by chance."""
        return self.share_bad > MOST_BAD


def digest_of(body: IO[bytes]) -> str:
    """Return what tells a file from any other."""
    body.seek(0)
    return file_digest(body, "sha256").hexdigest()  # type: ignore[arg-type]  # it may be in memory


def key_of(body: IO[bytes], on_error: str, dates: str) -> str:
    """Return the Idempotency-Key of a file that is sent whole: it is added once a day."""
    return f"upload-{on_error}-{dates}-{digest_of(body)}"


def checked(backend: Backend, body: IO[bytes], dates: str, token: str) -> Outcome:
    """Have the ledger check the rows of a file, without adding any.

    dates: one of `DAY_ORDERS` if the visitor says it, else "". Raises Unreadable; DoubtfulDays;
    BackendAway; and Refused for problems that are not about rows.
    """
    options = {"dry_run": "true", "on_error": "skip", "dates": dates}
    check = _send(backend, body, options, "", token)
    return _outcome(check, there_as=next(iter(check["duplicate_of"]), None))


def _outcome(answer: Json, **more: Any) -> Outcome:
    """Return what an answer of the backend says of rows. more: further members."""
    there, conflicts = answer["already_there"], answer["conflicts"]
    return Outcome(
        answer["accepted"] + there + conflicts,
        answer["rejected"],
        answer["errors"],
        bad_cancelled=answer["rejected_cancelled"],
        bad_not_arrived=answer["rejected_not_arrived"],
        there=there,
        conflicts=conflicts,
        conflicting=answer["conflicting"],
        understood=_understanding_of(answer["understood"]),
        **more,
    )


def added(
    backend: Backend, body: IO[bytes], dates: str, on_error: str, key: str, token: str
) -> Outcome:
    """Add the rows of a file to the ledger. Raises as `checked`.

    on_error: "skip" adds the good rows; "reject" adds nothing if a row is bad.
    """
    started = time.time()
    try:
        receipt = _send(backend, body, {"on_error": on_error, "dates": dates}, key, token)
    except Refused as refused:
        if not refused.errors:
            raise
        return checked(backend, body, dates, token)  # it counts all bad rows
    accepted = receipt["accepted"]
    return _outcome(
        receipt,
        added=accepted,
        before=accepted if _is_older(receipt, started) else 0,
        first=receipt.get("first_transaction"),
        last=receipt.get("last_transaction"),
        receipts=_receipts(receipt),
        timestamp=receipt.get("timestamp"),
    )


def _receipts(receipt: Json) -> tuple[str, str] | None:
    """Return the addresses of the first and last flight's receipts; None if none was added.

    A node of a cluster names both; of one flight it names the first alone.
    """
    if not receipt["accepted"]:
        return None
    if (first := receipt["first_transaction"]) is not None:
        return f"/receipts/{first}", f"/receipts/{receipt['last_transaction']}"
    address = receipt["receipt"]
    return address, receipt.get("last_receipt") or address


def _is_older(receipt: Json, started: float) -> bool:
    """Return whether a receipt is from a request before the one that `started` then (Unix time)."""
    accepted = receipt.get("timestamp")
    return accepted is not None and accepted / 1000 < started - CLOCKS_AGREE_S


def _send(
    backend: Backend, body: IO[bytes], options: Mapping[str, str], key: str, token: str
) -> Json:
    if not body.seek(0, SEEK_END):
        raise Unreadable(EMPTY)
    body.seek(0)
    given = {name: value for name, value in options.items() if value}
    try:
        return backend.add_batch(body, ANY_FILE, {**given, "duplicates": "skip"}, key, token)
    except Refused as refused:
        if refused.status != 422 or refused.errors:
            raise
        if refused.readings:
            raise DoubtfulDays(refused) from None
        if (match := _problem.fullmatch(refused.detail)) is None:
            raise
        line = int(match["line"]) if match["line"] else None
        is_of_all = match["field"] in {None, "line"}
        what = "It" if is_of_all else f"{match['field']} {match['value']}"
        raise Unreadable(f"{what} {match['reason']}.", line) from None


def _understanding_of(answer: Mapping[str, Any]) -> Json:
    """Return what an answer of the backend says that it took a file for.

    With `fields` in the order of a record: each has its `name`, its `origin` in the file, and its
    `values` in some rows.
    """
    derived = {
        name: f"from {what}"
        for what, names in answer["derived"].items()
        for name in names.split(", ")
    }
    origins = derived | answer["columns"] | dict.fromkeys(answer["left_empty"], "stays empty")
    rows = answer.get("sample", ())[:SHOWN_ROWS]
    fields = [
        {"name": name, "origin": origins.get(name, ""), "values": [row[name] for row in rows]}
        for name in TRANSACTION_NAMES
        if name not in NOT_IN_FILES
    ]
    return {name: answer[name] for name in SHOWN} | {"fields": fields}
