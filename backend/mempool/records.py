"""Defines a record of the mempool: flights with consecutive ids that were accepted together.

A record is a row of the table `record`. A long batch is several records, written in one
transaction. The digest covers every other column, because SQLite does not compare what it reads
from its write-ahead log with anything. So a record is read as it was written, or not at all.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from backend.chain.flight import Flight
from backend.chain.identity import Stored
from backend.chain.placeholder import VOID

FLIGHTS_A_RECORD = 250  # at most, so that to read one of them is cheap

_HEAD = struct.Struct("<QQQQ")
_VOID = b"[]"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[tuple[int | str | None, ...]]).decode


@dataclass(frozen=True, slots=True)
class Accepted:
    """Flights that were accepted together, or a part of them.

    first_transaction: id of the first. timestamp: when they were accepted, UTC milliseconds.
    is_repeat: whether they were accepted before, under the same idempotency key. records: for each
    flight that was offered those that there were of its leg, or of the flight alone if only new
    ones are accepted. count: how many flights of an offer were accepted, now or then.
    """

    first_transaction: int
    timestamp: int
    flights: list[Flight]
    is_repeat: bool = False
    records: list[list[Stored]] = field(default_factory=list)
    count: int = 0


class Unsound(ValueError):
    """A row is not as it was written."""


class Record(NamedTuple):
    """A row of the table.

    first: the first id. flight_count: how many flights. timestamp: when they were accepted, UTC
    milliseconds. mined: how many transactions blocks held then. flights: JSON, a list of lists of
    values; an empty list if they were lost, and `VOID` stands for each of them.
    """

    first: int
    flight_count: int
    timestamp: int
    mined: int
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

    def decoded(self) -> list[Flight]:
        """Return the flights. Raises Unsound if they are not what the record says."""
        if self.is_void:
            return [VOID] * self.flight_count
        with suppress(ValueError):
            flights: list[Flight] = list(_decode(self.flights))
            if len(flights) == self.flight_count:
                return flights
        raise Unsound(f"the record of transaction {self.first} lacks flights")

    def part(self, start: int, limit: int) -> Accepted:
        """Return the flights from id `start` on, at most `limit`. Raises Unsound."""
        skip = max(0, start - self.first)
        flights = self.decoded()[skip : skip + limit]
        return Accepted(self.first + skip, self.timestamp, flights)


def records_of(
    first: int, timestamp: int, flights: Sequence[Flight], mined: int = 0
) -> list[Record]:
    """Make the records of flights that get the ids from `first` on.

    timestamp: UTC milliseconds. mined: how many transactions blocks hold now.
    """
    parts = (flights[at : at + FLIGHTS_A_RECORD] for at in range(0, len(flights), FLIGHTS_A_RECORD))
    return [
        _with_digest(first + number * FLIGHTS_A_RECORD, len(part), timestamp, mined, _encode(part))
        for number, part in enumerate(parts)
    ]


def void_record(first: int, count: int, timestamp: int, mined: int) -> Record:
    """Make the record of `count` flights that were lost."""
    return _with_digest(first, count, timestamp, mined, _VOID)


def sound_record(row: tuple[object, ...]) -> Record:
    """Return the record in a row of the table. Raises Unsound if its digest is wrong."""
    record = Record(*row)  # type: ignore[arg-type]
    with suppress(TypeError, struct.error):  # a column of another type
        if _with_digest(*record[:-1]) == record:
            return record
    raise Unsound(f"the record of transaction {record.first} does not agree with its checksum")


def _with_digest(first: int, count: int, timestamp: int, mined: int, flights: bytes) -> Record:
    digest = blake2b(_HEAD.pack(first, count, timestamp, mined), digest_size=16)
    digest.update(flights)
    return Record(first, count, timestamp, mined, flights, digest.digest())


def missing_ids(records: Iterable[Record], end: int, mined: int) -> Iterator[range]:
    """Yield the runs of ids below `end` that neither records nor blocks hold.

    records: in order. mined: how many transactions blocks hold.
    """
    following = mined
    for record in records:
        if following < record.first:
            yield range(following, record.first)
        following = max(following, record.next)
    if following < end:
        yield range(following, end)
