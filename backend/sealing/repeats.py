"""Finds flights that the sources of one import list more than once, however many they are.

While sources are read, a hash of the leg of each flight is kept, eight bytes, in a file. Afterwards
hashes that occur once are done with, and these are nearly always all. Only batches with others are
read again from the spool, and flights of these legs are compared (`chain.identity`). If they
are many, as in a file that is listed twice, the flights are split by their hashes first, so that
each is read twice, and few are in memory at once.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import NamedTuple

from backend.chain.fields import POSITION, Value
from backend.chain.flight import Flight
from backend.chain.identity import LEG_FIELDS, Leg, NewFlights, Stored, leg_of
from backend.sealing.newcomers import SourceComparison
from backend.sealing.spool import Spool, packed
from backend.sources.source import FlightColumns

BUCKETS = 256  # a quarter of a million hashes in each, for sixty million flights
BUFFERED = 2048  # hashes of a bucket
MOST_AT_ONCE = 50_000  # legs that are compared together
SPLIT_ROWS = 250  # that are written together when flights are split
ROWS_PER_REPORT = 50_000

_LEG = [POSITION[name] for name in LEG_FIELDS]


class LegHashes:
    """Hashes of the legs of many flights, in a file of their own."""

    def __init__(self, file: Spool) -> None:
        """file: takes the hashes, and flights that are split by them."""
        self.file = file
        self._buckets = [array("q") for _ in range(BUCKETS)]
        self._chunks: list[list[tuple[int, int]]] = [[] for _ in range(BUCKETS)]

    def add(self, hashes: "array[int]") -> None:
        """Note the legs of a batch. Raises WriteFailed."""
        buckets = self._buckets
        for number in hashes:
            buckets[number % BUCKETS].append(number)
        for place, bucket in enumerate(buckets):
            if len(bucket) >= BUFFERED:
                self._chunks[place].append((self.file.end, bucket.itemsize * len(bucket)))
                self.file.append(bucket.tobytes())
                buckets[place] = array("q")

    def groups(self) -> list[range]:
        """Return ranges of all buckets, with about `MOST_AT_ONCE` repeated hashes in each.

        There are none if no hash is repeated.
        """
        groups, first, count = [], 0, 0
        for place in range(BUCKETS):
            count += len(self.repeated(range(place, place + 1)))
            if count >= MOST_AT_ONCE or (count and place == BUCKETS - 1):
                groups.append(range(first, place + 1))
                first, count = place + 1, 0
        return [*groups[:-1], *(range(group.start, BUCKETS) for group in groups[-1:])]

    def repeated(self, buckets: range) -> Set[int]:
        """Return the hashes in some buckets that occur more than once."""
        repeated: set[int] = set()
        for place in buckets:
            bucket = self._buckets[place][:]
            for offset, size in self._chunks[place]:
                bucket.frombytes(self.file.read(size, offset))
            if len(set(bucket)) < len(bucket):
                repeated.update(number for number, count in Counter(bucket).items() if count > 1)
        return repeated


def hashes_of(columns: FlightColumns) -> "array[int]":
    """Return a hash of the leg of each flight; the same ones in processes that were forked."""
    return array("q", map(hash, zip(*[columns[place] for place in _LEG], strict=True)))


@dataclass(slots=True)
class Part:
    """The new flights of a source.

    label: the source's. flights: how many. comparison: of its valid flights with the ledger, and
    with what comes before them in the sources. start, end: where the new ones are in the spool.
    """

    label: str
    flights: int = 0
    comparison: SourceComparison = field(default_factory=SourceComparison)
    start: int = 0
    end: int = 0


class Compared(NamedTuple):
    """Says how far a comparison is. flights: how many are done. fraction: of all, 0 to 1."""

    flights: int
    fraction: float


OnCompare = Callable[[Compared], None]


class _Rows(NamedTuple):
    """Flights of a part.

    part: its place. numbers: their row numbers in it. legs: hashes of their legs. read: returns
    their columns.
    """

    part: int
    numbers: Sequence[Value]
    legs: Sequence[int]
    read: Callable[[], FlightColumns]


def without_repeats(
    spool: Spool, legs: LegHashes, parts: Sequence[Part], on_compare: OnCompare
) -> None:
    """Leave out the flights of which there was one before, in all sources.

    A source may list a flight without departure beside one that departed; for those of another
    source the rule is that for stored flights. Raises WriteFailed.
    """
    groups = legs.groups()
    if not groups:
        return
    comparison = _Comparison(parts, min(2, len(groups)), on_compare)
    if len(groups) == 1:
        comparison.add(legs.repeated(groups[0]), _rows(spool, parts))
    else:
        split = _Split(legs.file, groups)
        split.fill(comparison.counted(_rows(spool, parts)))
        for place, buckets in enumerate(groups):
            comparison.add(legs.repeated(buckets), split.rows(place))
    for part, kept in zip(parts, comparison.are_kept, strict=True):
        if 0 in kept:
            _rewrite(spool, part, kept)


def _rows(spool: Spool, parts: Sequence[Part]) -> Iterator[_Rows]:
    for place, part in enumerate(parts):
        first = 0
        for batch in spool.batches(part.start, part.end):
            numbers = range(first, first + len(batch.legs))
            yield _Rows(place, numbers, batch.legs, batch.read)
            first = numbers.stop


class _Split:
    """The flights of all parts, in several groups, each in their order."""

    def __init__(self, spool: Spool, groups: Sequence[range]) -> None:
        """groups: of buckets of their hashes."""
        self._spool = spool
        self._group_of = [n for n, buckets in enumerate(groups) for _ in buckets]
        self._held: list[list[tuple[Value, ...]]] = [[] for _ in groups]
        self._chunks: list[list[tuple[int, int, int]]] = [[] for _ in groups]

    def fill(self, batches: Iterable[_Rows]) -> None:
        """Write all flights. Raises WriteFailed."""
        part = 0
        for batch in batches:
            if batch.part != part:
                self._write_all(part, 1)
                part = batch.part
            rows = zip(*batch.read(), batch.numbers, strict=True)
            for number, row in zip(batch.legs, rows, strict=True):
                self._held[self._group_of[number % BUCKETS]].append(row)
            self._write_all(part, SPLIT_ROWS)
        self._write_all(part, 1)

    def _write_all(self, part: int, fewest: int) -> None:
        for held, chunks in zip(self._held, self._chunks, strict=True):
            if len(held) >= fewest:
                start = self._spool.end
                columns = list(map(list, zip(*held, strict=True)))
                self._spool.append_flights(packed(columns), hashes_of(columns))
                chunks.append((part, start, self._spool.end))
                held.clear()

    def rows(self, group: int) -> Iterator[_Rows]:
        for part, start, end in self._chunks[group]:
            for batch in self._spool.batches(start, end):
                *columns, numbers = batch.read()
                yield _Rows(part, numbers, batch.legs, partial(list, columns))


class _Comparison:
    """Finds flights of which there was one before.

    are_kept: for each flight of each part, 0 if it is such a flight.
    """

    def __init__(self, parts: Sequence[Part], readings: int, on_compare: OnCompare) -> None:
        """readings: how often each flight is read. on_compare: is called now and then."""
        self.are_kept = [bytearray(b"\1") * part.flights for part in parts]
        self._parts, self._readings, self._on_compare = parts, readings, on_compare
        self._to_read = readings * sum(part.flights for part in parts)
        self._read = self._reported = 0

    def counted(self, batches: Iterable[_Rows]) -> Iterator[_Rows]:
        """Yield `batches`, and count their flights."""
        for batch in batches:
            yield batch
            self._read += len(batch.numbers)
            if self._read - self._reported >= ROWS_PER_REPORT or self._read == self._to_read:
                self._reported = self._read
                self._on_compare(Compared(self._read // self._readings, self._read / self._to_read))

    def add(self, hashes: Set[int], batches: Iterable[_Rows]) -> None:
        """Compare all flights with these hashes."""
        earlier, place = _Earlier(), 0
        for batch in self.counted(batches):
            if batch.part != place:
                earlier.begin_part()
                place = batch.part
            part, kept = self._parts[place], self.are_kept[place]
            if hashes.isdisjoint(batch.legs):
                continue
            flights = zip(*batch.read(), strict=True)
            for number, row, flight in zip(batch.legs, batch.numbers, flights, strict=True):
                if number in hashes and not earlier.add(flight, part):
                    kept[int(row or 0)] = 0


class _Earlier:
    """The flights that were kept so far."""

    def __init__(self) -> None:
        self._flights: set[Flight] = set()
        self._of_earlier_parts: dict[Leg, list[Stored]] = {}
        self._of_part = NewFlights()

    def begin_part(self) -> None:
        for leg, records in self._of_part.by_leg.items():
            self._of_earlier_parts.setdefault(leg, []).extend(records)
        self._of_part = NewFlights()

    def add(self, flight: Flight, part: Part) -> bool:
        """Add a flight of `part`, or count it there if there was one. Returns whether it is new."""
        if flight in self._flights:  # the same row again, which is the usual repeat
            part.comparison.already_there += 1
            return False
        stored = self._of_part.match_or_add(flight, self._of_earlier_parts.get(leg_of(flight), ()))
        if stored is None:
            self._flights.add(flight)
            return True
        part.comparison.note(flight, stored)
        return False


def _rewrite(spool: Spool, part: Part, kept: bytearray) -> None:
    """Write the flights that are kept at the end of the spool."""
    start, first = spool.end, 0
    for batch in spool.batches(part.start, part.end):
        of_batch = kept[first : first + len(batch.legs)]
        if any(of_batch):
            columns = [list(compress(column, of_batch)) for column in batch.read()]
            spool.append_flights(packed(columns))
        first += len(of_batch)
    part.start, part.end, part.flights = start, spool.end, sum(kept)
