"""Reads sources to their end before anything of them is stored, in as many processes as are useful.

Each process reads a source from its beginning and takes only every n-th batch apart, which is most
of the work. What is valid and new goes into a `Spool`, from which the blocks are built later. So
what comes through a pipe is kept once, and a file that changes after its check does no harm.
"""

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from pathlib import Path

from backend.base.errors import BadRow, InvalidInput, WriteFailed, excerpt
from backend.base.files import free_bytes
from backend.base.settings import Settings
from backend.chain.fields import POSITION
from backend.index.queries import IndexReader
from backend.sealing.block_builder import BATCHES_PER_SIGN
from backend.sealing.child import Send, sent_by
from backend.sealing.newcomers import Newcomers, SourceComparison
from backend.sealing.repeats import LegHashes, OnCompare, Part, hashes_of, without_repeats
from backend.sealing.spool import Spool, packed
from backend.sources.source import (
    CANCELLED,
    NOT_ARRIVED,
    FlightColumns,
    RawRows,
    Source,
    Understanding,
    Validator,
    is_misdated,
    state_of,
)

NEARLY_ALL = 0.99  # of a source that was read to its end, and not compared yet
STORED_BYTES = 130  # that a flight takes in blocks and index, with room to spare
MOST_PROCESSES = 4  # each of them unpacks the whole file
LEAST_BYTES = 1 << 20  # of a file for which a second process is worth its start
_DATE = POSITION["FL_DATE"]
SHOWN_BAD_ROWS = 100


@dataclass(frozen=True, slots=True)
class BadRowsOfBatch:
    """The bad rows of a batch.

    rows: what is wrong with each, what became of its flight (`source.state_of`), and how it stands
    in the file. header: what stands there above them.
    """

    rows: Sequence[tuple[BadRow, str, str]]
    header: str | None

    @classmethod
    def of(cls, raw: RawRows, bad: Sequence[BadRow]) -> "BadRowsOfBatch":
        """Return those of `raw`. bad: what `Validator.judge` found."""
        for problem in bad:
            problem.value = excerpt(problem.value)  # a line may be long
        return cls([(row, state_of(raw, row), raw.text(row.row)) for row in bad], raw.header)


@dataclass(slots=True)
class BadRows:
    """The bad rows of a source, as they stand there, so that they can be corrected and imported.

    count: how many. cancelled, not_arrived: how many of them are flights that were cancelled, or
    have no time of arrival for another reason. misdated: as in `source.is_misdated`. first: the
    first `SHOWN_BAD_ROWS`. start, end: where they stand in the spool of bad rows. header: what
    stands above them there; None without any.
    """

    count: int = 0
    cancelled: int = 0
    not_arrived: int = 0
    misdated: int = 0
    first: list[BadRow] = field(default_factory=list)
    start: int = 0
    end: int = 0
    header: str | None = None

    @property
    def is_json(self) -> bool:
        """Whether they are a JSON object a line."""
        return self.header == ""

    def add(self, batch: BadRowsOfBatch, spool: Spool | None) -> None:
        """Add the bad rows of a batch. spool: takes them as they stand in the file."""
        self.count += len(batch.rows)
        for problem, state, text in batch.rows:
            if len(self.first) < SHOWN_BAD_ROWS:
                self.first.append(problem)
            self.cancelled += state == CANCELLED
            self.not_arrived += state == NOT_ARRIVED
            self.misdated += is_misdated(problem)
            if spool is not None and batch.header is not None:
                self._keep(spool, batch.header, problem, text)

    def _keep(self, spool: Spool, header: str, problem: BadRow, text: str) -> None:
        """Write a row below its header. Raises InvalidInput if that is not of the rows before."""
        lines = [text]
        if self.header is None:
            self.header, self.start, lines = header, spool.end, [header, text]
        elif self.header != header:
            file = problem.place.rpartition(", ")[0]
            reason = "has bad rows, and its header differs from that of earlier bad rows"
            remedy = "import it separately, unpacked if it is in an archive"
            raise InvalidInput("file", file, f"{reason}; {remedy}")
        for line in filter(None, lines):
            spool.append(f"{line}\n".encode(errors="surrogateescape"))
        self.end = spool.end


@dataclass(slots=True)
class Checked(Part):
    """Says what the check of a source has found, so far or in all.

    understood: what it was taken for, as far as it was read. rows: how many it has, bad ones too.
    fraction: how much of the source has been read, 0 to 1.
    """

    understood: Understanding | None = None
    rows: int = 0
    bad: BadRows = field(default_factory=BadRows)
    fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class _Batch:
    """Holds what a process has read.

    rows: how many. legs: hashes of the legs of the flights that are valid and new; data: these,
    packed. comparison: of the valid ones with the ledger. fraction: how much of the source has been
    read, 0 to 1.
    """

    rows: int
    legs: "array[int]"
    data: bytes
    bad: BadRowsOfBatch
    comparison: SourceComparison
    fraction: float


def check(
    settings: Settings,
    sources: Sequence[Source],
    spool: Spool,
    bad_rows: Spool | None,
    on_check: Callable[[Checked], None],
    on_compare: OnCompare,
) -> list[Checked]:
    """Return what was found in each source.

    spool: takes the flights that are valid and new. bad_rows: takes the bad rows as they stand in
    their file; None if nobody wants them. on_check: called again and again while a source is read.
    on_compare: the same, if flights are in the sources more than once. Raises InvalidInput if a
    source cannot be read to its end, and WriteFailed if the disk is full.
    """
    with closing(Spool(settings.folder)) as file:
        legs = LegHashes(file)
        results = []
        for source in sources:
            checked = Checked(source.label, start=spool.end, end=spool.end)
            for _ in _read(source, checked, legs, spool, bad_rows, settings.folder):
                _require_room(settings, checked.flights, checked.fraction)
                on_check(checked)
            results.append(checked)
        without_repeats(spool, legs, results, on_compare)
        _require_room(settings, sum(checked.flights for checked in results), 1.0)
    return results


def _require_room(settings: Settings, flights: int, fraction: float) -> None:
    """Raise WriteFailed unless so many flights can be stored, which are a part of the source."""
    free, least = free_bytes(settings.folder), settings.min_free_bytes
    if free < least + flights * STORED_BYTES:
        in_all = least + round(flights * STORED_BYTES / max(fraction, 0.01))
        raise WriteFailed(
            f"the disk of {settings.folder} has {free:,} bytes free, but the import needs about "
            f"{in_all:,}; free some space, and try again"
        )


def _read(
    source: Source,
    checked: Checked,
    legs: LegHashes,
    spool: Spool,
    bad_rows: Spool | None,
    folder: Path,
) -> Iterator[None]:
    """Read a source to its end, and yield now and then what was found so far in `checked`."""
    number = 0
    for message in _messages(source, folder):
        if isinstance(message, Understanding):
            checked.understood = message.joined(checked.understood)
            continue
        checked.rows += message.rows
        checked.flights += len(message.legs)
        checked.comparison.add(message.comparison)
        checked.bad.add(message.bad, bad_rows)
        if message.legs:
            spool.append_flights(message.data, message.legs)
            legs.add(message.legs)
        if number % BATCHES_PER_SIGN == 0:
            checked.fraction = min(message.fraction, NEARLY_ALL)
            yield
        number += 1
    checked.end, checked.fraction = spool.end, 1.0
    yield


def _messages(source: Source, folder: Path) -> Iterator[_Batch | Understanding]:
    """Yield what processes send that read the source, its batches in their order."""
    most = MOST_PROCESSES if source.packed_bytes() >= LEAST_BYTES else 1
    count = min(most, len(os.sched_getaffinity(0)))
    with ExitStack() as stack:
        works = [partial(_send_share, source, (k, count), folder) for k in range(count)]
        processes = [stack.enter_context(closing(sent_by(work))) for work in works]
        for messages in cycle(processes):  # a batch of each, until one has no more
            if (message := next(messages, None)) is None:
                break
            yield message
        for messages in processes:
            yield from messages


def _require_month(source: Source, columns: FlightColumns) -> None:
    """Raise InvalidInput for a flight that is not of the month of its source."""
    for day in set(columns[_DATE] if source.month and columns else ()):
        if not str(day).startswith(source.month):
            reason = f"has flights of {day}, but {source.month} was asked for"
            raise InvalidInput("file", source.label, reason)


def _send_share(source: Source, share: tuple[int, int], folder: Path, send: Send) -> None:
    """Run as a process: send what is in every n-th batch of a source."""
    source.share = share
    validator = Validator()
    newcomers = Newcomers(IndexReader(folder), SourceComparison())
    with closing(source.rows()) as batches:
        for raw in batches:
            columns, bad = validator.judge(raw)
            _require_month(source, columns)
            new = newcomers.among(columns) if columns else columns
            rows = len(raw.lines) + len(raw.faults)
            data = packed(new) if new else b""
            legs, fraction = hashes_of(new) if new else array("q"), source.progress()
            kept = BadRowsOfBatch.of(raw, bad)
            send(_Batch(rows, legs, data, kept, newcomers.comparison, fraction))
            newcomers.comparison = SourceComparison()
    if known := source.understood():
        send(replace(known, sample=partial(list, known.sample())))  # a pipe takes no closure
