"""Sends a file of flights to the ledger, which checks it and adds it, and says what came of it."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from frontend.backend_client import Backend, Json
from frontend.field_labels import TRANSACTION_NAMES
from frontend.filters import short_interval

AT_WORK = {"checking", "adding"}
PATIENCE_S = 4.0  # a short file is checked, or added, by then
POLL_S = 0.1
SHOWN_ROWS = 3
MOST_BAD = 0.01  # of the rows of a file, that are left out without being asked; as in an import
NOT_IN_FILES = {"TRANSACTION_ID", "timestamp"}


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """What the ledger says of a file that was sent to it.

    answer: of `GET /imports/ID`. The other properties are of its check, if that has ended well.
    """

    answer: Json

    @property
    def id(self) -> str:
        return str(self.answer["IMPORT_ID"])

    @property
    def is_at_work(self) -> bool:
        """Return whether it is being checked or added."""
        return self.answer["state"] in AT_WORK

    @property
    def meanings(self) -> Mapping[str, str]:
        """Return what a day in doubt would be, by the orders in which days are written."""
        readings: Mapping[str, str] = self.answer.get("readings", {})
        return {order: short_interval(day, day) for order, day in readings.items()}

    @property
    def report(self) -> Json:
        report: Json = self.answer["report"]
        return report

    @property
    def good(self) -> int:
        """Return how many rows are flights."""
        return sum(self.report[name] for name in ("accepted", "already_there", "conflicts"))

    @property
    def rows(self) -> int:
        return int(self.good + self.report["rejected"])

    @property
    def share_bad(self) -> float:
        return float(self.report["rejected"] / max(1, self.rows))

    @property
    def is_doubtful(self) -> bool:
        """Return whether so many rows are bad that the good ones may be right by chance."""
        return self.share_bad > MOST_BAD

    @property
    def there_as(self) -> int | None:
        """Return the id of the first flight that the ledger has already, if it has one."""
        return next(iter(self.report["duplicate_of"]), None)

    @property
    def fields(self) -> Sequence[Json]:
        """Return the fields of a flight, each with its `origin` in the file and first `values`."""
        understood = self.report["understood"]
        derived = {
            name: f"from {what}"
            for what, names in understood["derived"].items()
            for name in names.split(", ")
        }
        empty = dict.fromkeys(understood["left_empty"], "stays empty")
        origins: dict[str, Any] = derived | understood["columns"] | empty
        rows = understood["sample"][:SHOWN_ROWS]
        return [
            {"name": name, "origin": origins.get(name, ""), "values": [row[name] for row in rows]}
            for name in TRANSACTION_NAMES
            if name not in NOT_IN_FILES
        ]

    @property
    def receipts(self) -> tuple[str, str] | None:
        """Return the addresses of the first and last added flight's receipts; None without any.

        A node of a cluster names both.
        """
        added = self.answer["added"]
        if not added["flights"]:
            return None
        if (first := added["first_transaction"]) is not None:
            return f"/receipts/{first}", f"/receipts/{added['last_transaction']}"
        return added["receipt"], added["last_receipt"]


def sent(backend: Backend, body: IO[bytes], name: str, part_bytes: int, token: str) -> str:
    """Send a file, and return its id. Raises BackendAway, Refused."""
    size = body.seek(0, os.SEEK_END)
    body.seek(0)
    import_id: str = backend.begin_import(name, size, token)["IMPORT_ID"]
    for offset in range(0, size, part_bytes):
        backend.send_part(import_id, offset, body.read(part_bytes), token)
    return import_id


def settled(backend: Backend, import_id: str) -> UploadedFile:
    """Return a file when nothing is being done with it any more, or after `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while (file := UploadedFile(backend.sent_file(import_id))).is_at_work:
        if time.monotonic() >= deadline:
            break
        time.sleep(POLL_S)
    return file
