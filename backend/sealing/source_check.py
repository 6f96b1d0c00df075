"""Reads sources to their end before anything of them is stored, in a process of its own.

What is valid and new goes into a `Spool`, from which the blocks are built later. So every row is
read once, also that of a pipe, and a file that changes after its check does no harm.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from backend.base.errors import WriteFailed
from backend.base.files import free_bytes
from backend.chain.fields import FIELD_NAMES
from backend.index.queries import IndexReader
from backend.sealing.bad_rows import BadRowCounter, BadRows
from backend.sealing.block_builder import BATCHES_PER_SIGN
from backend.sealing.child import Send
from backend.sealing.newcomers import Newcomers, SourceComparison
from backend.sealing.repeats import LegHashes, Part, without_repeats
from backend.sealing.spool import Spool
from backend.sources.flight_file import FlightFile
from backend.sources.source import FlightColumns, Source, Validator, bad_rows

NEARLY_ALL = 0.99  # of a source that was read to its end, and not compared yet
STORED_BYTES = 130  # that a flight takes in blocks and index, with room to spare


@dataclass(slots=True)
class Checked:
    """What the check of a source has found, so far or in all.

    label: the source's. understood: what it was taken for, once it was read. rows: how many it has,
    bad ones too. flights: how many are valid and new. comparison: of the valid ones with the
    ledger, and with what comes before them in the sources. start, end: where the new ones are in
    the spool. fraction: how much of the source has been read, 0 to 1.
    """

    label: str
    understood: str = ""
    rows: int = 0
    flights: int = 0
    comparison: SourceComparison = field(default_factory=SourceComparison)
    bad: BadRows = field(default_factory=BadRows)
    start: int = 0
    end: int = 0
    fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class Room:
    """The room on the disk of the chain's folder. least: bytes that must stay free."""

    folder: Path
    least: int

    def require(self, flights: int, fraction: float) -> None:
        """Raise WriteFailed unless so many flights can be stored.

        fraction: how much of the source they are.
        """
        free = free_bytes(self.folder)
        if free >= self.least + flights * STORED_BYTES:
            return
        in_all = self.least + round(flights * STORED_BYTES / max(fraction, 0.01))
        raise WriteFailed(
            f"the disk of {self.folder} has {free:,} bytes free, but the import needs about "
            f"{in_all:,}; free some space and run it again"
        )


@dataclass(frozen=True, slots=True)
class Spools:
    """Where a check keeps what it reads.

    flights: those that are valid and new. bad_rows: takes the bad rows as CSV; None if nobody wants
    them.
    """

    flights: Spool
    bad_rows: Spool | None = None


def check(folder: Path, sources: Sequence[Source], spools: Spools, room: Room, send: Send) -> None:
    """Send the number and a `Checked` of each source, again and again while it is read.

    Then send `Compared`, again and again, if flights are in them more than once.
    Raises InvalidInput if a source cannot be read to its end, and WriteFailed if the disk is full.
    """
    reader, spool = IndexReader(folder), spools.flights
    with closing(Spool(folder)) as file:
        legs = LegHashes(file)
        results = [Checked(source.label) for source in sources]
        for place, (source, checked) in enumerate(zip(sources, results, strict=True)):
            checked.start = checked.end = spool.end
            newcomers = Newcomers(reader, source.label, checked.comparison)
            for number, columns in enumerate(_valid(source, checked, spools.bad_rows)):
                new = newcomers.among(columns)
                if new[0]:
                    spool.append_flights(new)
                    legs.add(new)
                checked.flights += len(new[0])
                if number % BATCHES_PER_SIGN == 0:
                    checked.fraction = min(source.progress(), NEARLY_ALL)
                    room.require(checked.flights, checked.fraction)
                    send((place, checked))
            room.require(checked.flights, 1.0)
            checked.end, checked.fraction = spool.end, 1.0
            if isinstance(source, FlightFile):
                checked.understood = str(source.understood())
            send((place, checked))
        parts = [Part(c.label, c.start, c.end, c.flights, c.comparison) for c in results]
        for place, part in enumerate(without_repeats(spool, legs, parts, send)):
            if part != parts[place]:
                checked = results[place]
                checked.start, checked.end, checked.flights = part.start, part.end, part.flights
                send((place, checked))
        room.require(sum(checked.flights for checked in results), 1.0)


def _valid(source: Source, checked: Checked, spool: Spool | None) -> Iterator[FlightColumns]:
    """Yield the valid flights of each batch, and count its rows. spool: takes the bad ones."""
    validator = Validator()
    counter = BadRowCounter(checked.bad, spool)
    rows = source.rows()
    try:
        for raw in rows:
            columns, bad = validator.judge(raw)
            checked.rows += len(raw.lines) + len(raw.faults) + raw.hopeless
            checked.bad.count += raw.hopeless
            for problem in bad_rows(source, raw, bad):
                counter.add(problem, raw)
            yield columns or [[] for _ in FIELD_NAMES]
    finally:
        rows.close()
