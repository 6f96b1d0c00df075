"""Every error this package raises on purpose, as one small tree.

    FlightchainError
    ├── InvalidInput            a value from outside is not acceptable: field, value, reason
    │   ├── InvalidFlight       … in a flight record (HTTP 422)
    │   ├── InvalidQuery        … in a parameter of a question (HTTP 400)
    │   ├── KeyReused           … as an idempotency key: it came with something else (HTTP 422)
    │   ├── InvalidSetting      … in an environment variable or option
    │   └── BadRow              … in a file to import: names the file and the line
    ├── BackupRefused           a backup cannot be made or restored there, or is not a good one
    ├── NotAllowed              no token, or one that is not known (HTTP 401)
    ├── NotFound                nothing by that height, id or name (HTTP 404)
    ├── TryLater                push-back: full, starting, rebuilding (HTTP 503 with Retry-After)
    ├── WriterBusy              another process holds the writer lock
    ├── WriteFailed             the disk refused; the writer is poisoned until it is restarted
    └── Damage                  bytes that are not what they must be; writing stops
        ├── DamagedBlock        … names the block
        ├── DamagedMempool      … names the file and the byte
        │   └── NeedsRepair     … and whoever accepts or mines next puts it right
        └── RuleViolation       … names the block and the numbered rule of `chain.rules`

A message says what was wrong, with the value, and what to do next.
"""

import reprlib


class FlightchainError(Exception):
    """Base of the tree above. Its kinds can be sent between processes as they are."""

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (type(self), self.args, self.__dict__)


def _remade(
    kind: type[FlightchainError], arguments: tuple[object, ...], attributes: dict[str, object]
) -> FlightchainError:
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


def shown(value: object, limit: int = 80) -> str:
    """`value` as it may stand in a message: quoted, escaped and cut at `limit` characters."""
    try:
        text = ascii(value[:limit]) if isinstance(value, str) else reprlib.repr(value)
    except ValueError:  # Python refuses to write out an integer of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _name(field: str) -> str:
    """A field's name as it may stand in a message; names come from outside, too."""
    return field if field.isascii() and field.isidentifier() and len(field) <= 60 else shown(field)


class InvalidInput(FlightchainError):
    """A value from outside is not acceptable.

    Attributes: `field` (name), `value` (as given), `reason` (ends the sentence "FIELD VALUE: …").
    """

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"{_name(field)} {shown(value)}: {reason}")
        self.field = field
        self.value = value
        self.reason = reason


class InvalidFlight(InvalidInput):
    """A field of a flight record."""


class InvalidQuery(InvalidInput):
    """A parameter of a question."""


class KeyReused(InvalidInput):
    """An idempotency key that was used for something else in the last day."""

    def __init__(self, key: str, first_transaction: int) -> None:
        reason = f"was used for transaction {first_transaction}, which said something else"
        super().__init__("Idempotency-Key", key, reason)


class InvalidSetting(InvalidInput):
    """An environment variable or a command line option."""


class BadRow(InvalidInput):
    """A row of a file to import.

    Attributes as `InvalidInput`, `place` ("FILE, line N") and `row`, its number.
    """

    def __init__(self, place: str, field: str, value: object, reason: str, row: int = 0) -> None:
        super().__init__(field, value, reason)
        self.args = (f"{place}: {self}",)
        self.place = place
        self.row = row


class BackupRefused(FlightchainError):
    """A backup cannot be made in that folder, or be restored from it or to there."""


class NotAllowed(FlightchainError):
    """A write without a token that is known here."""


class NotFound(FlightchainError):
    """Nothing by that height, id or name."""


class TryLater(FlightchainError):
    """Push-back. `retry_after_s` is a whole number of seconds to wait."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class WriterBusy(FlightchainError):
    """Another process holds the writer lock."""


class WriteFailed(FlightchainError):
    """A write or a sync failed. Whoever wrote must stop: a failed sync is never retried."""


class Damage(FlightchainError):
    """Stored bytes are not what they must be."""


class DamagedBlock(Damage):
    """A stored block. Attribute: `height`."""

    def __init__(self, height: int, what: str) -> None:
        super().__init__(f"block {height} is damaged: {what}")
        self.height = height
        self.what = what


class DamagedMempool(Damage):
    """A record of the mempool that is neither whole nor the torn end of the last file."""


class NeedsRepair(DamagedMempool):
    """A log of the mempool that whoever holds the mempool's lock can put right."""


class RuleViolation(Damage):
    """A block breaks a rule of the chain. Attributes: `height`, `rule` (as "R4"), `what`."""

    def __init__(self, height: int, rule: str, what: str) -> None:
        super().__init__(f"block {height} breaks rule {rule}: {what}")
        self.height = height
        self.rule = rule
        self.what = what
