"""A record of the mempool's log: what one `accept` wrote. Little-endian:

    4  magic "FCM1"          4  bytes of the payload       4  CRC-32 of what follows
    8  first id              4  number of flights          8  acceptance, UTC milliseconds
    …  payload: JSON, a list of flights, each a list of its 19 values; or, if they came with an
       idempotency key, {"key": …, "body": its SHA-256, "flights": such a list}

What does not agree with its checksum is no record: a batch is in the log whole or not at all.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from backend.chain.flight import Flight
from backend.keys import IdempotencyKey, KeyUse

MAGIC = b"FCM1"
_PREFIX = struct.Struct("<4sII")
_CONTENT = struct.Struct("<QIQ")
HEAD_BYTES = _PREFIX.size + _CONTENT.size

_Flights = list[tuple[int | str | None, ...]]


class _Keyed(msgspec.Struct):
    key: str
    body: str
    flights: _Flights


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Flights | _Keyed).decode


@dataclass(frozen=True, slots=True)
class Accepted:
    """Flights that were accepted together, or a part of them.

    first_transaction: id of the first. timestamp: acceptance, UTC milliseconds. is_repeat: they
    were accepted before, under the same idempotency key. copies: for each the id of a flight that
    equals it and was pending before, or None; empty if they were not looked for.
    """

    first_transaction: int
    timestamp: int
    flights: list[Flight]
    is_repeat: bool = False
    copies: list[int | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Record:
    """Where a record stands. segment: first id of its file. offset, length: bytes."""

    first: int
    count: int
    timestamp: int
    segment: int
    offset: int
    length: int

    @property
    def next(self) -> int:
        """The id after the last one in it."""
        return self.first + self.count


def packed(
    first: int, timestamp: int, flights: Sequence[Flight], key: IdempotencyKey | None = None
) -> bytes:
    """The bytes of a record. first: the first id. timestamp: UTC milliseconds."""
    if key is None:
        payload = _encode(flights)
    else:
        payload = _encode(_Keyed(key.text, key.body_hash, list(flights)))
    content = _CONTENT.pack(first, len(flights), timestamp) + payload
    return _PREFIX.pack(MAGIC, len(payload), zlib.crc32(content)) + content


def record_at(data: bytes | memoryview, at: int, segment: int, offset: int) -> Record | None:
    """The record that starts `at` in `data`, or None if there is no whole one."""
    if len(data) - at < HEAD_BYTES:
        return None
    magic, payload_bytes, crc = _PREFIX.unpack_from(data, at)
    length = HEAD_BYTES + payload_bytes
    content = data[at + _PREFIX.size : at + length]
    if magic != MAGIC or len(data) - at < length or zlib.crc32(content) != crc:
        return None
    first, count, timestamp = _CONTENT.unpack_from(data, at + _PREFIX.size)
    return Record(first, count, timestamp, segment, offset, length)


def flights_in(payload: bytes | memoryview) -> list[Flight]:
    """The flights of a record."""
    found = _decode(payload)
    return list(found.flights if isinstance(found, _Keyed) else found)


def key_in(payload: memoryview, record: Record) -> tuple[str, KeyUse] | None:
    """The idempotency key that a record came with, and what it was used for."""
    if payload[0] != ord("{"):
        return None
    keyed = _decode(payload)
    assert isinstance(keyed, _Keyed)
    return keyed.key, KeyUse(keyed.body, record.first, record.count, record.timestamp)
