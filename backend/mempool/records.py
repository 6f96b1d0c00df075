"""Defines a record of the mempool, which is what one offer wrote: flights with consecutive ids.

A record is a row of the table `record`. Its digest covers every other column, because SQLite does
not compare what it reads from its write-ahead log with anything. So a record is read as it was
written, or not at all.
"""

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from backend.chain.flight import Flight
from backend.chain.identity import Stored
from backend.chain.placeholder import VOID
from backend.mempool.idempotency_keys import IdempotencyKey, KeyUse

_HEAD = struct.Struct("<QQQQII")
_DIGEST_BYTES = 16
_VOID = b"[]"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[int | str | None, ...]]).decode


@dataclass(frozen=True, slots=True)
class Accepted:
    """Flights that were accepted together, or a part of them.

    first_transaction: id of the first. timestamp: when they were accepted, UTC milliseconds.
    is_repeat: whether they were accepted before, under the same idempotency key. records: for each
    flight that was offered those that there were of its leg, or of the flight alone if only new
    ones are accepted; empty if they were not looked for. count: how many flights of an offer were
    accepted, now or then.
    """

    first_transaction: int
    timestamp: int
    flights: list[Flight]
    is_repeat: bool = False
    records: list[list[Stored]] = field(default_factory=list)
    count: int = 0


class UnsoundRecord(ValueError):
    """A record is not as it was written."""


class Record(NamedTuple):
    """A row of the table.

    first: the first id. flight_count: how many flights. timestamp: when they were accepted, UTC
    milliseconds. mined: how many transactions blocks held then. key, body_hash: of the idempotency
    key that came with them, or empty. flights: JSON, a list of lists of values; an empty list if
    they were lost, and `VOID` stands for each of them.
    """

    first: int
    flight_count: int
    timestamp: int
    mined: int
    key: str
    body_hash: str
    flights: bytes
    digest: bytes

    @property
    def next(self) -> int:
        """The id after the last one."""
        return self.first + self.flight_count

    @property
    def is_void(self) -> bool:
        """Whether the flights were lost."""
        return self.flights == _VOID

    def key_use(self) -> KeyUse:
        """What the record's idempotency key was used for."""
        return KeyUse(self.body_hash, self.first, self.flight_count, self.timestamp)

    def decoded(self) -> list[Flight]:
        """Return the flights. Raises UnsoundRecord if they are not what the record says."""
        if self.is_void:
            return [VOID] * self.flight_count
        with suppress(msgspec.DecodeError):
            flights: list[Flight] = list(_decode(self.flights))
            if len(flights) == self.flight_count:
                return flights
        raise UnsoundRecord(f"the record of transaction {self.first} lacks flights")


def record_of(
    first: int,
    timestamp: int,
    flights: Sequence[Flight],
    key: IdempotencyKey | None = None,
    mined: int = 0,
) -> Record:
    """Make the record of flights that get the ids from `first` on.

    timestamp: UTC milliseconds. mined: how many transactions blocks hold now.
    """
    text, body_hash = (key.text, key.body_hash) if key else ("", "")
    return _with_digest(first, len(flights), timestamp, mined, text, body_hash, _encode(flights))


def void_record(first: int, count: int, timestamp: int, mined: int) -> Record:
    """Make the record of `count` flights that were lost."""
    return _with_digest(first, count, timestamp, mined, "", "", _VOID)


def sound_record(row: tuple[object, ...]) -> Record:
    """Return the record in a row of the table. Raises UnsoundRecord if its digest is wrong."""
    record = Record(*row)  # type: ignore[arg-type]
    try:
        if _with_digest(*record[:-1]).digest == record.digest:
            return record
    except (TypeError, struct.error, AttributeError):  # a column of another type
        pass
    raise UnsoundRecord(f"the record of transaction {record.first} is not as it was written")


def _with_digest(
    first: int, count: int, timestamp: int, mined: int, key: str, body_hash: str, flights: bytes
) -> Record:
    texts = (key.encode(), body_hash.encode())
    digest = blake2b(
        _HEAD.pack(first, count, timestamp, mined, *map(len, texts)), digest_size=_DIGEST_BYTES
    )
    for part in (*texts, flights):
        digest.update(part)
    return Record(first, count, timestamp, mined, key, body_hash, flights, digest.digest())
