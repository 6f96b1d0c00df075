"""Writes and reads a record of the mempool's log, which is what one offer wrote. Little-endian:

    4  magic "FCM2"          4  bytes of the payload       4  CRC-32 of what follows
    16 BLAKE2b of what follows
    8  first id              4  number of flights          8  acceptance, UTC milliseconds
    8  how many transactions blocks held when it was written
    …  payload: JSON, a list of flights, each a list of its 19 values; or, if they came with an
       idempotency key, {"key": …, "body": its SHA-256, "flights": such a list}; or an empty list:
       its flights were lost, and `VOID` stands for each of them

Bytes that do not agree with both checksums are no record: a batch is in the log whole or not at
all. If a single bit of a record has flipped, the CRC tells which, and the hash proves it
(`mended`).

Records "FCM1" of earlier releases are read, too. They lack the hash and the number of transactions.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, examine
from backend.chain.void import VOID
from backend.mempool.crc import flipped_bit
from backend.mempool.idempotency_keys import IdempotencyKey, KeyUse
from backend.mempool.segments import Segment

MAGIC = b"FCM2"
_OLD_MAGIC = b"FCM1"
ANY_MAGIC = b"FCM"  # what the two begin with
_PREFIX = struct.Struct("<4sII")
_LENGTH_AT, _CRC_AT = 4, 8  # in the prefix
_HASH_BYTES = 16
_CONTENT = struct.Struct("<QIQQ")
_OLD_CONTENT = struct.Struct("<QIQ")
_HASHED_FROM = _PREFIX.size + _HASH_BYTES
_BEGINNING = re.compile(rb"FCM(?=[12].{3}[\x00-\x07])", re.DOTALL)  # not longer than 128 MB
HEAD_BYTES = _HASHED_FROM + _CONTENT.size
_OLD_HEAD_BYTES = _PREFIX.size + _OLD_CONTENT.size

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

    first_transaction: id of the first. timestamp: when they were accepted, UTC milliseconds.
    is_repeat: whether they were accepted before, under the same idempotency key. copies: for each
    flight the id of an equal one that was pending before, or None; empty if copies were not looked
    for.
    """

    first_transaction: int
    timestamp: int
    flights: list[Flight]
    is_repeat: bool = False
    copies: list[int | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Record:
    """The place of a record in the log, and the contents of its head.

    first: the first id in it. next: the id after the last one. timestamp: when its flights were
    accepted, UTC milliseconds. mined: how many transactions blocks held when it was written.
    offset, length, payload_at: bytes; the last counts from the record's own start.
    """

    first: int
    next: int
    timestamp: int
    mined: int
    segment: Segment
    offset: int
    length: int
    payload_at: int

    @property
    def count(self) -> int:
        """How many flights the record holds."""
        return self.next - self.first

    @property
    def is_of_earlier_release(self) -> bool:
        """Whether an earlier release wrote the record, with the magic "FCM1"."""
        return self.payload_at == _OLD_HEAD_BYTES


def packed(
    first: int,
    timestamp: int,
    flights: Sequence[Flight],
    key: IdempotencyKey | None = None,
    mined: int = 0,
) -> bytes:
    """The bytes of a record of `flights`, which get the ids from `first` on.

    timestamp: UTC milliseconds. mined: how many transactions blocks hold now.
    """
    if key is None:
        payload = _encode(flights)
    else:
        payload = _encode(_Keyed(key.text, key.body_hash, list(flights)))
    return _framed(_CONTENT.pack(first, len(flights), timestamp, mined), payload)


def packed_void(first: int, count: int, timestamp: int, mined: int) -> bytes:
    """The bytes of a record of `count` flights that were lost."""
    return _framed(_CONTENT.pack(first, count, timestamp, mined), b"[]")


def _framed(head: bytes, payload: bytes) -> bytes:
    content = head + payload
    checked = _hash_of(content) + content
    return _PREFIX.pack(MAGIC, len(payload), zlib.crc32(checked)) + checked


def _hash_of(content: bytes | memoryview) -> bytes:
    return blake2b(content, digest_size=_HASH_BYTES).digest()


def record_at(data: bytes | memoryview, at: int, segment: Segment, offset: int) -> Record | None:
    """The record that starts `at` in `data`; None if no whole record does.

    segment, offset: where it is in the log.
    """
    if len(data) - at < _OLD_HEAD_BYTES:
        return None
    magic, payload_bytes, crc = _PREFIX.unpack_from(data, at)
    if magic == _OLD_MAGIC:
        return _old_record_at(data, at, segment, offset)
    length = HEAD_BYTES + payload_bytes
    if magic != MAGIC or len(data) - at < length:
        return None
    checked = memoryview(data)[at + _PREFIX.size : at + length]
    if zlib.crc32(checked) != crc or _hash_of(checked[_HASH_BYTES:]) != checked[:_HASH_BYTES]:
        return None
    first, count, timestamp, mined = _CONTENT.unpack_from(data, at + _HASHED_FROM)
    return Record(first, first + count, timestamp, mined, segment, offset, length, HEAD_BYTES)


def _old_record_at(
    data: bytes | memoryview, at: int, segment: Segment, offset: int
) -> Record | None:
    _, payload_bytes, crc = _PREFIX.unpack_from(data, at)
    length = _OLD_HEAD_BYTES + payload_bytes
    content = data[at + _PREFIX.size : at + length]
    if len(data) - at < length or zlib.crc32(content) != crc:
        return None
    first, count, timestamp = _OLD_CONTENT.unpack_from(content)
    return Record(first, first + count, timestamp, 0, segment, offset, length, _OLD_HEAD_BYTES)


def beginnings_in(data: bytes, at: int) -> Iterator[int]:
    """Where records may begin in `data` from byte `at` on.

    It is never within text: the last byte of a length is below 8 here, and text has no such byte.
    """
    return (match.start() for match in _BEGINNING.finditer(data, at))


_FEWEST_BYTES_OF_FLIGHT = 8  # a flight has 19 values; but a record may be cut off within them


def end_named_in(data: bytes, first: int) -> int:
    """The id after the last one that damaged records name; 0 if they name none.

    data: bytes that are no record. first: the id that should follow. Heads in the bytes are
    believed if their ids follow each other, and if there are enough bytes for that many flights.
    """
    at, end = 0, 0
    while head := _head_at(data, at):
        named, flights, length = head
        if named != (end or first) or flights * _FEWEST_BYTES_OF_FLIGHT > len(data) - at:
            break
        at, end = at + length, named + flights
    return end


def _head_at(data: bytes, at: int) -> tuple[int, int, int] | None:
    """The first id, the number of flights and the length in bytes that a damaged record names."""
    left = len(data) - at
    if left < _OLD_HEAD_BYTES:
        return None
    magic, payload_bytes, _ = _PREFIX.unpack_from(data, at)
    if magic == MAGIC and left >= HEAD_BYTES:
        first, flights, *_ = _CONTENT.unpack_from(data, at + _HASHED_FROM)
        return first, flights, HEAD_BYTES + payload_bytes
    if magic == _OLD_MAGIC:
        first, flights, _ = _OLD_CONTENT.unpack_from(data, at + _PREFIX.size)
        return first, flights, _OLD_HEAD_BYTES + payload_bytes
    return None


def flights_in(data: bytes | memoryview, record: Record) -> list[Flight]:
    """The flights of a record, whose bytes are `data`."""
    found = _decode(data[record.payload_at :])
    flights = list(found.flights if isinstance(found, _Keyed) else found)
    return flights or [VOID] * record.count


def is_void(data: bytes | memoryview, record: Record) -> bool:
    """Whether the flights of a record were lost."""
    return data[record.payload_at :] == b"[]"


def key_in(data: memoryview, record: Record) -> tuple[str, KeyUse] | None:
    """The idempotency key of a record, and what it was used for; None if it has none."""
    if data[record.payload_at] != ord("{"):
        return None
    keyed = _decode(data[record.payload_at :])
    assert isinstance(keyed, _Keyed)
    return keyed.key, KeyUse(keyed.body, record.first, record.count, record.timestamp)


# --- a flipped bit ---------------------------------------------------------------------------


def mended(data: bytes | memoryview, at: int) -> bytes | None:
    """The record that starts `at`, with its one flipped bit put right.

    None if no single bit makes it a whole record. The hash proves that a record is what it was; a
    record of an earlier release has no hash, and is taken if all its flights are there and valid.
    """
    start = bytes(data[at : at + _PREFIX.size])
    if len(start) < _PREFIX.size:
        return None
    for bit in range(8 * _CRC_AT):
        prefix = _with_flipped(start, bit)
        end = at + _length_in(prefix)
        # if the length changes, the record must end where another begins: so few are tried
        if at < end <= len(data) and (bit < 8 * _LENGTH_AT or _may_end_at(data, end)):
            found = prefix + bytes(data[at + _PREFIX.size : end])
            if _is_sound(found):
                return found
    return mended_behind_length(data, at)


def mended_behind_length(data: bytes | memoryview, at: int) -> bytes | None:
    """The record with its one flipped bit put right, if that is behind the magic and the length.

    None if there is no such record. This is faster than `mended`.
    """
    start = bytes(data[at : at + _PREFIX.size])
    length = _length_in(start) if len(start) == _PREFIX.size else 0
    if not length or at + length > len(data):
        return None
    found = bytes(data[at : at + length])
    _, _, crc = _PREFIX.unpack(start)
    change = zlib.crc32(memoryview(found)[_PREFIX.size :]) ^ crc
    bits = [8 * _CRC_AT + change.bit_length() - 1] if change.bit_count() == 1 else []
    if (bit := flipped_bit(change, length - _PREFIX.size)) is not None:
        bits.append(8 * _PREFIX.size + bit)
    return next(filter(_is_sound, (_with_flipped(found, bit) for bit in bits)), None)


def _length_in(prefix: bytes) -> int:
    """The length of a record that begins with `prefix`; 0 if no record begins so."""
    magic, payload_bytes, _ = _PREFIX.unpack(prefix)
    head_bytes = {MAGIC: HEAD_BYTES, _OLD_MAGIC: _OLD_HEAD_BYTES}.get(magic)
    return head_bytes + int(payload_bytes) if head_bytes else 0


def _may_end_at(data: bytes | memoryview, end: int) -> bool:
    return end == len(data) or data[end : end + len(ANY_MAGIC)] == ANY_MAGIC


def _with_flipped(data: bytes, bit: int) -> bytes:
    flipped = bytearray(data)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def _is_sound(data: bytes) -> bool:
    """Whether this is a whole record, and its hash or valid flights prove that."""
    record = record_at(data, 0, Segment(0), 0)
    return record is not None and (data.startswith(MAGIC) or _holds_valid_flights(data, record))


def _holds_valid_flights(data: bytes, record: Record) -> bool:
    try:
        found = _decode(data[record.payload_at :])
    except msgspec.DecodeError:
        return False
    flights = found.flights if isinstance(found, _Keyed) else found
    return 0 < len(flights) == record.count and all(map(_is_valid, flights))


def _is_valid(flight: Flight) -> bool:
    parsed, problems = examine(dict(zip(FIELD_NAMES, flight, strict=False)))
    return not problems and parsed == flight
