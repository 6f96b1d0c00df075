"""A transaction is a flight, its position in the ledger, and the time when it was accepted.

Its canonical bytes are those of `canonical`, whose rules it cannot break: members stand in the
order of their names, and hold integers that JSON holds exactly, texts or null. Knowing that much
makes writing and reading them several times faster.
"""

from operator import itemgetter
from typing import Annotated, Any

import msgspec

from backend.chain.canonical import MAX_SAFE_INTEGER
from backend.chain.fields import FIELD, FIELD_NAMES, Value
from backend.chain.flight import Flight

TRANSACTION_ID, TIMESTAMP = "TRANSACTION_ID", "timestamp"

_SAFE = Annotated[int, msgspec.Meta(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
_NAMES = (TRANSACTION_ID, TIMESTAMP, *FIELD_NAMES)  # in the order of what makes a transaction
_SORTED = sorted(_NAMES)


def _type_of(name: str) -> Any:
    if name in {TRANSACTION_ID, TIMESTAMP}:
        return _SAFE
    kind: Any = _SAFE if FIELD[name].kind == "integer" else str
    return kind | None if FIELD[name].nullable else kind


Transaction = msgspec.defstruct(
    "Transaction",
    [(name, _type_of(name)) for name in _SORTED],
    frozen=True,
    forbid_unknown_fields=True,
)
"""The 21 values by their names; made by `transaction` or `transaction_in`."""

_in_order = itemgetter(*map(_NAMES.index, _SORTED))
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Transaction).decode


def transaction(flight: Flight, transaction_id: int, timestamp: int) -> Any:
    """Return the transaction of a valid flight. timestamp: acceptance, UTC milliseconds."""
    values: tuple[Value, ...] = (transaction_id, timestamp, *flight)
    return Transaction(*_in_order(values))


def transaction_bytes(transaction: Any) -> bytes:
    """Return the canonical bytes of a transaction."""
    return _encode(transaction)


def transaction_in(data: bytes) -> Any:
    """Return the transaction that JSON of any form states. Raises ValueError if it states none."""
    return _decode(data)
