"""Defines every error that this package raises on purpose, as one small tree.

    FlightchainError
    ├── InvalidInput            a value from outside is not acceptable: field, value, reason
    │   ├── InvalidFlight       … in a flight record (HTTP 422)
    │   ├── InvalidQuery        … in a parameter of a question (HTTP 400)
    │   ├── KeyReused           an idempotency key was used for something else (HTTP 422)
    │   ├── InvalidSetting      … in an environment variable or option
    │   └── BadRow              … in a file to import; it names the file and the line
    ├── BackupRefused           a backup cannot be made or restored there, or is not a good one
    ├── NotAllowed              there is no token, or an unknown one (HTTP 401)
    ├── NotFound                nothing has that height, id or name (HTTP 404)
    ├── TryLater                push-back: full, starting, rebuilding (HTTP 503 with Retry-After)
    │   └── PlacesTaken         … by other requests; a log says nothing of it
    ├── WriterBusy              another process holds the writer lock
    ├── WriteFailed             the disk refused; nothing more is written until a restart
    └── Damage                  stored bytes are not what they must be; writing stops
        ├── DamagedBlock        … in a block, which it names
        ├── DamagedMempool      … in the mempool; it names the file
        │   └── NeedsRepair     … the next process that accepts or mines repairs it
        └── RuleViolation       a block breaks a numbered rule of `chain.block_rules`; it names both

A message says what was wrong, with the value, and what to do next.
"""

import reprlib
from collections.abc import Callable
from typing import Any

EXCERPT_CHARACTERS = 200
LONGEST_NUMBER_BITS = 1000  # Python refuses to write out thousands of digits


class FlightchainError(Exception):
    """The base of all errors above. They can be sent between processes without loss."""

    def __reduce__(self) -> tuple[object, ...]:
        return Exception.__new__, (type(self), *self.args), self.__dict__


def shown(value: object, limit: int = 80, quoted: Callable[[str], str] = ascii) -> str:
    """Write `value` for a message: quoted, escaped and cut at `limit` characters."""
    try:
        text = quoted(value[:limit]) if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # Python refuses to write out an integer of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def excerpt(value: object) -> object:
    """Return `value` as an answer may show it: short texts and numbers as they are, others cut."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and value.bit_length() <= LONGEST_NUMBER_BITS:
        return value
    text = value if isinstance(value, str) else shown(value, EXCERPT_CHARACTERS)
    if len(text) > EXCERPT_CHARACTERS:
        text = text[: EXCERPT_CHARACTERS - 1] + "…"
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _name(field: str) -> str:
    """Write a field's name for a message; names come from outside, too."""
    return field if field.isascii() and field.isidentifier() and len(field) <= 60 else shown(field)


class InvalidInput(FlightchainError):
    """A value from outside is not acceptable.

    field: its name. value: as given, or None. reason: the end of the message "FIELD VALUE: …", or
    "FIELD …" without a value.
    """

    def __init__(self, field: str, value: object, reason: str) -> None:
        # People know the letters of their own files; in a city, letters that look alike may differ.
        quoted = repr if field == "file" or isinstance(self, InvalidSetting) else ascii
        given = "" if value is None else f" {shown(value, quoted=quoted)}:"
        super().__init__(f"{_name(field)}{given} {reason}")
        self.field = field
        self.value = value
        self.reason = reason

    def described(self) -> dict[str, Any]:
        """Return what an answer says of it."""
        shown = {"field": str(excerpt(self.field)), "value": excerpt(self.value)}
        return {**shown, "detail": self.reason}


class InvalidFlight(InvalidInput):
    """A field of a flight record is not acceptable. members: further ones of the answer."""

    def __init__(self, field: str, value: object, reason: str, **members: object) -> None:
        super().__init__(field, value, reason)
        self.members = members


class InvalidQuery(InvalidInput):
    """A parameter of a question is not acceptable."""


class KeyReused(InvalidInput):
    """An idempotency key was used for something else in the last day."""

    def __init__(self, key: str, first_transaction: int, receipt: str = "") -> None:
        """receipt: its address, in a ledger whose flights get their ids only when mined."""
        what = receipt or f"transaction {first_transaction}"
        super().__init__(
            "Idempotency-Key",
            key,
            f"was used for {what} with another body or parameters; use a new key",
        )
        self.key = key
        self.first_transaction = first_transaction


class InvalidSetting(InvalidInput):
    """An environment variable or a command line option is not acceptable."""


class BadRow(InvalidInput):
    """A row of a file to import is not acceptable.

    place: "FILE, line N". row: its number. The other attributes are as in `InvalidInput`.
    """

    def __init__(self, place: str, field: str, value: object, reason: str, row: int = 0) -> None:
        super().__init__(field, value, reason)
        self.args = (f"{place}: {self}",)
        self.place = place
        self.row = row

    def described(self) -> dict[str, Any]:
        """Return what an answer says of it, with its row."""
        return {"row": self.row, **super().described()}


class BackupRefused(FlightchainError):
    """A backup cannot be made in a folder, or cannot be restored from it or to it."""


class NotAllowed(FlightchainError):
    """A write came without a known token."""


class NotFound(FlightchainError):
    """Nothing has that height, id or name."""


class TryLater(FlightchainError):
    """The request cannot be answered now. retry_after_s: whole seconds to wait before the next."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class PlacesTaken(TryLater):
    """Other requests take all places, which clients may cause as often as they like."""


class WriterBusy(FlightchainError):
    """Another process holds the writer lock."""


class WriteFailed(FlightchainError):
    """A write or a sync failed. The writer must stop, because a failed sync is never retried."""


class Damage(FlightchainError):
    """Stored bytes are not what they must be."""


class DamagedBlock(Damage):
    """A stored block is damaged. height: its height. what: what is wrong with it."""

    def __init__(self, height: int, what: str) -> None:
        super().__init__(f"block {height} is damaged: {what}")
        self.height = height
        self.what = what


class DamagedMempool(Damage):
    """The mempool lacks flights that were accepted, or does not belong to these blocks."""


class NeedsRepair(DamagedMempool):
    """The mempool's file is damaged, and a process that holds the mempool's lock can repair it."""


class RuleViolation(Damage):
    """A block breaks a rule of the chain. height: the block. rule: such as "R4". what: how."""

    def __init__(self, height: int, rule: str, what: str) -> None:
        super().__init__(f"block {height} breaks rule {rule}: {what}")
        self.height = height
        self.rule = rule
        self.what = what
