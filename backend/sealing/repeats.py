"""Finds flights that the sources of one import list more than once, however many they are.

While sources are read, only a hash of the leg of each flight is kept, eight bytes, in a file.
Afterwards hashes that occur once are done with, and these are nearly always all. Only for the
others the spool is read again, and flights of these legs are compared (`chain.identity`).
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import compress
from typing import NamedTuple

from backend.chain.fields import POSITION
from backend.chain.flight import Flight
from backend.chain.identity import LEG_FIELDS, Leg, NewFlights, Stored, leg_of
from backend.sealing.newcomers import SourceComparison
from backend.sealing.spool import Spool
from backend.sources.source import FlightColumns

BUCKETS = 256  # a quarter of a million hashes in each, for sixty million flights
BUFFERED = 2048  # hashes of a bucket
MOST_AT_ONCE = 200_000  # legs that are compared in one reading of the spool

_LEG = [POSITION[name] for name in LEG_FIELDS]


class LegHashes:
    """Hashes of the legs of many flights, in a file of their own."""

    def __init__(self, file: Spool) -> None:
        self._file = file
        self._buckets = [array("q") for _ in range(BUCKETS)]
        self._chunks: list[list[tuple[int, int]]] = [[] for _ in range(BUCKETS)]

    def add(self, columns: FlightColumns) -> None:
        """Note the legs of a batch. Raises WriteFailed."""
        buckets = self._buckets
        for number in hashes_of(columns):
            buckets[number % BUCKETS].append(number)
        for place, bucket in enumerate(buckets):
            if len(bucket) >= BUFFERED:
                self._chunks[place].append((self._file.end, bucket.itemsize * len(bucket)))
                self._file.append(bucket.tobytes())
                buckets[place] = array("q")

    def repeated(self) -> Iterator[Set[int]]:
        """Yield the hashes that occur more than once, about `MOST_AT_ONCE` at a time."""
        found: set[int] = set()
        for place, bucket in enumerate(self._buckets):
            for offset, size in self._chunks[place]:
                bucket.frombytes(self._file.read(size, offset))
            if len(set(bucket)) < len(bucket):
                found.update(number for number, count in Counter(bucket).items() if count > 1)
            if len(found) >= MOST_AT_ONCE:
                yield found
                found = set()
        if found:
            yield found


def hashes_of(columns: FlightColumns) -> list[int]:
    """Return a hash of the leg of each flight."""
    return list(map(hash, zip(*[columns[place] for place in _LEG], strict=True)))


class Part(NamedTuple):
    """The flights of a source in the spool, between two bytes. comparison: is added to."""

    label: str
    start: int
    end: int
    flights: int
    comparison: SourceComparison


def without_repeats(spool: Spool, legs: LegHashes, parts: Sequence[Part]) -> list[Part]:
    """Return where the flights of all sources are, without those of which there was one before.

    A source may list a flight without departure beside one that departed; for those of another
    source the rule is that for stored flights. Raises WriteFailed.
    """
    are_kept: list[bytearray] = []
    for hashes in legs.repeated():
        are_kept = are_kept or [bytearray(b"\1") * part.flights for part in parts]
        _compare(spool, hashes, parts, are_kept)
    if not are_kept:
        return list(parts)
    return [
        part if 0 not in kept else _rewritten(spool, part, kept)
        for part, kept in zip(parts, are_kept, strict=True)
    ]


def _compare(
    spool: Spool, hashes: Set[int], parts: Sequence[Part], are_kept: Sequence[bytearray]
) -> None:
    """Mark as 0 the flights with these hashes of which there was one before."""
    before: dict[Leg, list[Stored]] = {}
    for part, kept in zip(parts, are_kept, strict=True):
        new = NewFlights()
        for row, flight in _rows(spool, part, hashes):
            stored = new.match_or_add(flight, before.get(leg_of(flight), ()))
            if stored is not None:
                part.comparison.note(part.label, flight, stored)
                kept[row] = 0
        for leg, records in new.by_leg.items():
            before.setdefault(leg, []).extend(records)


def _rows(spool: Spool, part: Part, hashes: Set[int]) -> Iterator[tuple[int, Flight]]:
    """Yield the flights with these hashes and their row numbers in the part."""
    first = 0
    for columns, _ in spool.flights(part.start, part.end):
        numbers = hashes_of(columns)
        if not hashes.isdisjoint(numbers):
            for row, (number, flight) in enumerate(
                zip(numbers, zip(*columns, strict=True), strict=True), first
            ):
                if number in hashes:
                    yield row, flight
        first += len(numbers)


def _rewritten(spool: Spool, part: Part, kept: bytearray) -> Part:
    """Write the flights that are kept at the end of the spool."""
    start, first = spool.end, 0
    for columns, _ in spool.flights(part.start, part.end):
        of_batch = kept[first : first + len(columns[0])]
        if any(of_batch):
            spool.append_flights([list(compress(column, of_batch)) for column in columns])
        first += len(of_batch)
    return part._replace(start=start, end=spool.end, flights=sum(kept))
