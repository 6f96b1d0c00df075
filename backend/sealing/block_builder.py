"""Builds the contents of blocks from a source, in a process of its own that an import starts.

The builder does everything that does not depend on the ids of the flights: it reads, validates,
leaves out what the ledger has already, encodes, sums up and compresses. Messages go one way,
through a pipe; when the pipe breaks, the builder ends.
"""

import gc
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress as selected
from multiprocessing.connection import Connection
from pathlib import Path

from backend.base.clock import now_ms
from backend.base.errors import BadRow, FlightchainError
from backend.base.processes.parent_death import die_with_parent
from backend.chain.block import MAX_TRANSACTIONS
from backend.chain.block_content import content_of
from backend.chain.columns import columns_from
from backend.chain.fields import FIELD_NAMES, POSITION, Value
from backend.chain.flight import Flight
from backend.chain.summary import Cell
from backend.index.queries import IndexReader
from backend.sources.source import FlightColumns, Source, validated
from backend.storage.codec import compress

BATCHES_PER_SIGN = 20
DAYS_REMEMBERED = 4  # a day of all US flights takes 10 MB

_DATE, _NUMBER = POSITION["FL_DATE"], POSITION["OP_CARRIER_FL_NUM"]


@dataclass(frozen=True, slots=True)
class Built:
    """The flights of one block, encoded; none of them for a sign of life.

    count: how many. already_there: how many flights of the source, so far, the ledger had already.
    fraction: how much of the source has been read, 0 to 1.
    """

    count: int
    body: bytes
    compressed_body: bytes
    cells: list[Cell]
    already_there: int
    fraction: float


Message = Built | BadRow | FlightchainError | None  # None: the source has ended


@dataclass(frozen=True, slots=True)
class Job:
    """What to build.

    folder: the chain's folder. skip_bad: whether to send bad rows and go on; if not, the first one
    ends the builder.
    """

    folder: Path
    source: Source
    skip_bad: bool


def build(job: Job, theirs: Connection, ours: Connection) -> None:
    """Run as the builder process: send `Built`s and bad rows, then None or the error that ended it.

    theirs, ours: the importer's end of the pipe, which is closed here, and the builder's.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the importer decides, and breaks the pipe
    # A builder that outlives its importer would keep the writer lock that it inherited.
    die_with_parent(signal.SIGKILL)
    gc.disable()  # millions of tuples and no cycles: collecting costs a third of the time
    theirs.close()
    with suppress(BrokenPipeError):  # the importer is gone
        try:
            _build(job, ours)
        except FlightchainError as error:
            ours.send(error)
        else:
            ours.send(None)


def _build(job: Job, ours: Connection) -> None:
    newcomers = _Newcomers(IndexReader(job.folder))
    held: FlightColumns = [[] for _ in FIELD_NAMES]
    nothing: FlightColumns = [[] for _ in FIELD_NAMES]
    for number, columns in enumerate(validated(job.source, ours.send if job.skip_bad else None)):
        if number % BATCHES_PER_SIGN == 0:  # a sign of life, should the ledger have all already
            ours.send(_built(nothing, newcomers.already_there, job.source.progress()))
        for previous, new in zip(held, newcomers.among(columns), strict=True):
            previous.extend(new)
        while len(held[0]) >= MAX_TRANSACTIONS:
            block = [column[:MAX_TRANSACTIONS] for column in held]
            held = [column[MAX_TRANSACTIONS:] for column in held]
            ours.send(_built(block, newcomers.already_there, job.source.progress()))
    ours.send(_built(held, newcomers.already_there, 1.0))


def _built(columns: FlightColumns, already_there: int, fraction: float) -> Built:
    count = len(columns[0])
    content = content_of(columns_from([*columns, [now_ms()] * count]))
    compressed = compress(content.body)
    return Built(count, content.body, compressed, content.cells, already_there, fraction)


class _Newcomers:
    """Leaves out flights that the ledger held when the import began.

    Of equal rows as many are left out as the ledger has. Which of the ledger's flights have been
    matched is remembered only for the last `DAYS_REMEMBERED` days that were met. So if more days
    than that lie between two equal rows of a source, one flight in the ledger matches both.
    """

    def __init__(self, reader: IndexReader) -> None:
        self._reader = reader
        self._below = reader.position().transactions
        self._days = reader.days()
        self._unclaimed: dict[Value, dict[Value, Counter[Flight]]] = {}  # by day and number
        self.already_there = 0

    def among(self, columns: FlightColumns) -> FlightColumns:
        """Return the flights of `columns` that are new; this is quick on days that it lacks."""
        if self._days.isdisjoint(columns[_DATE]):
            return columns
        is_new = [not self._claims(flight) for flight in zip(*columns, strict=True)]
        self.already_there += is_new.count(False)
        return [list(selected(column, is_new)) for column in columns]

    def _claims(self, flight: Flight) -> bool:
        """Match `flight` with an equal one in the ledger that no row so far has matched, if any."""
        day, number = flight[_DATE], flight[_NUMBER]
        if day not in self._days:
            return False
        if day not in self._unclaimed:
            self._unclaimed[day] = {}
            if len(self._unclaimed) > DAYS_REMEMBERED:
                del self._unclaimed[next(iter(self._unclaimed))]
        of_day = self._unclaimed[day]
        if number not in of_day:
            flights = self._reader.flights_of(int(number or 0), str(day), self._below)
            of_day[number] = Counter({flight: len(ids) for flight, ids in flights.items()})
        if of_day[number][flight] == 0:
            return False
        of_day[number][flight] -= 1
        return True
