"""Sends a file of flights, or a slice of one, to the ledger, and says what came of it.

Rows are numbered by their lines, from 1 and with the header, as the backend does. A row is one
line: a quoted cell cannot go over several.
"""

import re
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest
from typing import IO, Any

from frontend.backend_client import Backend, Json
from frontend.bodies import CSV, NDJSON
from frontend.errors import Refused

CLOCKS_AGREE_S = 1.0
KIND_OF_NAME = {".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON}
PIECE_BYTES = 64 * 1024
PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "packed with gzip",
    b"\xfd7zXZ": "packed with xz",
}

SAVE_AS_UTF_8 = "Save it again as UTF-8 (in a spreadsheet: “CSV UTF-8”)."
EMPTY = "The file is empty."

# "body, line 7: line b'…': is longer than …"; the quoted text may be cut, and then has no end.
_problem = re.compile(
    r"body(?:, line (?P<line>\d+): line)? "
    r"b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|['\"].*?…): (?P<reason>.*)",
    re.DOTALL,
)


class Unreadable(Exception):
    """No row of a file can be accepted. line: where that begins; None if it is not known."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the ledger says about rows.

    good, bad: how many are flights, how many are not. bad_rows: the first bad ones, each with
    `row`, `field`, `value`, `detail`. there: how many of the good ones are left out because the
    ledger has them, the first of them as transaction `there_as` (if the rows are only checked).
    conflicts: how many are left out because they contradict what the ledger says of the flight;
    conflicting: the first of these, as the backend shows them. added: how many of the good ones
    were added, with the ids `first` to `last` (None while a cluster has
    not given them), since `timestamp` (UTC milliseconds). receipts: addresses of those of the first
    and the last. before: how many of these were there already, because the same file was sent
    before.
    """

    good: int
    bad: int
    bad_rows: Sequence[Mapping[str, Any]]
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


def kind_of(name: str, body: IO[bytes]) -> str:
    """Return the Content-Type of a file: by its name, or else by how it begins."""
    ending = f".{name.rpartition('.')[2].lower()}"
    body.seek(0)
    start = body.read(1000).removeprefix(BOM_UTF8).lstrip()
    return KIND_OF_NAME.get(ending) or (NDJSON if start.startswith(b"{") else CSV)


def go_to_text(body: IO[bytes]) -> None:
    """Go behind the byte order mark. Raises Unreadable unless the file is text in UTF-8."""
    body.seek(0)
    start = body.read(max(map(len, PACKED)))
    for mark, what in PACKED.items():
        if start.startswith(mark):
            raise Unreadable(f"The file is {what}. Unpack it first.")
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or b"\0" in start[:4]:
        raise Unreadable(f"The file is UTF-16 and not UTF-8. {SAVE_AS_UTF_8}")
    begin = len(BOM_UTF8) if start.startswith(BOM_UTF8) else 0
    body.seek(begin)
    _require_text(iter(partial(body.read, PIECE_BYTES), b""))
    body.seek(begin)


def _require_text(pieces: Iterator[bytes]) -> None:
    """Raise Unreadable unless the pieces of a file are text in UTF-8, and not empty."""
    decoder = getincrementaldecoder("utf-8")()
    line, is_empty, piece = 1, True, b""
    try:
        for piece in pieces:
            decoder.decode(piece)
            line += piece.count(b"\n")
            is_empty = is_empty and not piece.strip()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        line += error.object.count(b"\n", 0, error.start)
        raise Unreadable(
            f"The file has a character that is not UTF-8. {SAVE_AS_UTF_8}", line
        ) from None
    if is_empty:
        raise Unreadable(EMPTY)


def digest_of(body: IO[bytes]) -> str:
    """Return what tells a file from any other."""
    body.seek(0)
    return file_digest(body, "sha256").hexdigest()  # type: ignore[arg-type]  # it may be in memory


def key_of(body: IO[bytes], on_error: str) -> str:
    """The Idempotency-Key of a file that is sent whole, which adds the same file once a day."""
    return f"upload-{on_error}-{digest_of(body)}"


def checked(backend: Backend, body: IO[bytes], kind: str, token: str) -> Outcome:
    """Have the ledger check the rows of a file, without adding any.

    Raises Unreadable; BackendAway; and Refused for problems that are not about rows.
    """
    check = _send(backend, body, kind, {"dry_run": "true", "on_error": "skip"}, "", token)
    return _outcome(check, there_as=next(iter(check["duplicate_of"]), None))


def _outcome(answer: Json, **more: Any) -> Outcome:
    """Return what an answer of the backend says of rows. more: further members."""
    there, conflicts = answer["already_there"], answer["conflicts"]
    return Outcome(
        answer["accepted"] + there + conflicts,
        answer["rejected"],
        answer["errors"],
        there=there,
        conflicts=conflicts,
        conflicting=answer["conflicting"],
        **more,
    )


def added(
    backend: Backend, body: IO[bytes], kind: str, on_error: str, key: str, token: str
) -> Outcome:
    """Add the rows of a file to the ledger. Raises as `checked`.

    on_error: "skip" adds the good rows; "reject" adds nothing if a row is bad.
    """
    started = time.time()
    try:
        receipt = _send(backend, body, kind, {"on_error": on_error}, key, token)
    except Refused as refused:
        if not refused.errors:
            raise
        return checked(backend, body, kind, token)  # it counts all bad rows
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
    """The addresses of the receipts of the first and the last flight; None if none was added.

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
    backend: Backend, body: IO[bytes], kind: str, options: Mapping[str, str], key: str, token: str
) -> Json:
    go_to_text(body)
    try:
        return backend.add_batch(body, kind, {**options, "duplicates": "skip"}, key, token)
    except Refused as refused:
        match = _problem.fullmatch(refused.detail) if refused.status == 422 else None
        if match is None or refused.errors:
            raise
        line = int(match["line"]) if match["line"] else None
        raise Unreadable(f"It {match['reason']}.", line) from None
