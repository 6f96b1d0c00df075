"""Builds the contents of blocks from a source, in a process of its own that an import starts.

The builder does everything that does not depend on the ids of the flights: it reads, validates,
leaves out what the ledger has already, encodes, sums up and compresses. Messages go one way,
through a pipe; when the pipe breaks, the builder ends.
"""

import gc
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from backend.base.clock import now_ms
from backend.base.errors import BadRow, FlightchainError
from backend.base.processes.parent_death import die_with_parent
from backend.chain.block import MAX_TRANSACTIONS
from backend.chain.block_content import content_of
from backend.chain.columns import columns_from
from backend.chain.fields import FIELD_NAMES
from backend.chain.summary import Cell
from backend.index.queries import IndexReader
from backend.sealing.newcomers import Newcomers
from backend.sources.source import FlightColumns, Source, validated
from backend.storage.codec import compress

BATCHES_PER_SIGN = 20


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
    newcomers = Newcomers(IndexReader(job.folder))
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
