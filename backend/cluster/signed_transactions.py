"""Packs the flights that one node accepted into a transaction of the cluster, and reads it.

A node numbers the flights that it accepts from 0, without gaps. A cluster transaction carries
consecutive ones, signed by the node, so that nobody else can take up a number of its. Big-endian:

    4  magic "FCC1"      2  index of the node among the members     8  first number
    2  how many flights  64 Ed25519 signature of the name of the cluster and all the rest
    …  payload: zstd of JSON, a list of parts [acceptance in UTC milliseconds, flights]; a flight
       is the list of its 19 values, and the flights of a part were accepted together
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import zstandard
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from backend.base.errors import FlightchainError
from backend.chain.canonical import MAX_SAFE_INTEGER
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight, examine
from backend.mempool import Accepted

MOST_FLIGHTS = 250  # a block of 1000 has room for those of four nodes
MOST_JSON_BYTES = 2 * 2**20

_MAGIC = b"FCC1"
_HEAD = struct.Struct(">4sHQH")
_SIGNATURE_BYTES = 64
_PAYLOAD_AT = _HEAD.size + _SIGNATURE_BYTES
_DOMAIN = b"flightchain cluster transaction\n"

_Part = tuple[int, list[tuple[int | str | None, ...]]]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[_Part]).decode


class BadTransaction(FlightchainError):
    """The bytes are not a transaction of this cluster, or break a rule."""


@dataclass(frozen=True, slots=True)
class ClusterTransaction:
    """Flights that one node accepted, in the order of their numbers, as far as all must know them.

    node: its index among the members. first, following: the number of the first flight, and that
    after the last. first_ms: when the first was accepted, UTC milliseconds. earliest_ms, latest_ms:
    the first and the last time at which one was, which differ from the order if a clock was put
    back. data: the bytes that were read; `flights_in` reads the flights.
    """

    node: int
    first: int
    following: int
    first_ms: int
    earliest_ms: int
    latest_ms: int
    data: bytes

    @property
    def count(self) -> int:
        return self.following - self.first


def packed(cluster: str, node: int, parts: Sequence[Accepted], key: Ed25519PrivateKey) -> bytes:
    """Return the bytes of a transaction. cluster: its name. key: the node's.

    parts: consecutive flights that were accepted, at most `MOST_FLIGHTS`, at least one.
    """
    count = sum(len(part.flights) for part in parts)
    payload = zstandard.compress(_encode([(part.timestamp, part.flights) for part in parts]), 3)
    head = _HEAD.pack(_MAGIC, node, parts[0].first_transaction, count)
    return head + key.sign(_signed(cluster, head, payload)) + payload


def _signed(cluster: str, head: bytes, payload: bytes) -> bytes:
    return b"%b%b\n%b%b" % (_DOMAIN, cluster.encode(), head, payload)


def transaction_in(
    data: bytes, cluster: str, keys: Sequence[Ed25519PublicKey]
) -> ClusterTransaction:
    """Return the transaction in `data`. Raises BadTransaction for whatever is wrong with it.

    keys: those of the members, by their indices.
    """
    if len(data) <= _PAYLOAD_AT or not data.startswith(_MAGIC):
        raise BadTransaction("it does not begin as a transaction does")
    head, payload = data[: _HEAD.size], data[_PAYLOAD_AT:]
    _, node, first, count = _HEAD.unpack(head)
    if node >= len(keys):
        raise BadTransaction(f"the cluster has no member {node}")
    try:
        keys[node].verify(data[_HEAD.size : _PAYLOAD_AT], _signed(cluster, head, payload))
    except InvalidSignature:
        raise BadTransaction(f"member {node} has not signed it") from None
    times, flights = _content_of(payload)
    if not 0 < len(flights) == count <= MOST_FLIGHTS or first + count > MAX_SAFE_INTEGER:
        raise BadTransaction(
            f"it announces {count} flights from {first} on, and has {len(flights)}"
        )
    for flight in flights:
        _require_valid(flight)
    return ClusterTransaction(node, first, first + count, times[0], min(times), max(times), data)


def flights_in(transaction: ClusterTransaction) -> tuple[list[int], list[Flight]]:
    """Return the acceptance times and the flights of a transaction that was checked."""
    return _content_of(transaction.data[_PAYLOAD_AT:])


def _content_of(payload: bytes) -> tuple[list[int], list[Flight]]:
    try:
        if not 0 <= zstandard.frame_content_size(payload) <= MOST_JSON_BYTES:
            raise BadTransaction("its payload is too long")
        parts = _decode(zstandard.decompress(payload))
    except (zstandard.ZstdError, ValueError, RecursionError) as error:
        raise BadTransaction(f"its payload cannot be read: {error}") from error
    times = [time for time, flights in parts for _ in flights]
    flights = [flight for _, flights in parts for flight in flights]
    if any(not 0 <= time <= MAX_SAFE_INTEGER for time in times):
        raise BadTransaction("it names a time at which no flight can have been accepted")
    return times, flights


def _require_valid(flight: Flight) -> None:
    if len(flight) != len(FIELD_NAMES):
        raise BadTransaction(f"a flight has {len(flight)} values, not {len(FIELD_NAMES)}")
    parsed, problems = examine(dict(zip(FIELD_NAMES, flight, strict=True)))
    if problems:
        raise BadTransaction(str(problems[0]))
    if parsed != flight or list(map(type, parsed)) != list(map(type, flight)):
        raise BadTransaction("a flight is not in the form in which it is stored")
