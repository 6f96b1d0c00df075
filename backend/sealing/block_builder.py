"""Builds the contents of blocks from flights, in a process of its own that an import starts.

The builder leaves out what the ledger has already, encodes, sums up and compresses. It foresees the
ids, too, and makes the Merkle roots for these: who seals makes the roots again of blocks whose
flights get other ids, because somebody has posted meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backend.base.clock import now_ms
from backend.chain.block import MAX_TRANSACTIONS
from backend.chain.columns import columns_from
from backend.chain.fields import FIELD_NAMES
from backend.chain.state import ForeseenRoot, content_of, transactions_root
from backend.chain.summary import Cell
from backend.index.queries import IndexReader
from backend.sealing.child import Send
from backend.sealing.newcomers import Newcomers, SourceComparison
from backend.sources.source import FlightColumns
from backend.storage.codec import compress

BATCHES_PER_SIGN = 20


@dataclass(frozen=True, slots=True)
class Built:
    """The flights of one block, encoded; none of them for a sign of life.

    count: how many. foreseen: their Merkle root. comparison: of the flights so far with the ledger.
    fraction: how much of the source has been read, 0 to 1.
    """

    count: int
    body: bytes
    compressed_body: bytes
    cells: list[Cell]
    foreseen: ForeseenRoot
    comparison: SourceComparison
    fraction: float


@dataclass(frozen=True, slots=True)
class Job:
    """A block to build.

    folder: the chain's. first: the id that the first flight should get.
    batches: the flights, and with each batch how much of them has been read, 0 to 1. comparison:
    what an earlier one has found. is_compared: whether flights that the ledger has are to be left
    out.
    """

    folder: Path
    first: int
    batches: Iterator[tuple[FlightColumns, float]]
    comparison: SourceComparison = field(default_factory=SourceComparison)
    is_compared: bool = True


def build(job: Job, send: Send) -> None:
    """Send a `Built` for each block, and now and then an empty one."""
    newcomers = None
    if job.is_compared:
        newcomers = Newcomers(IndexReader(job.folder), job.comparison)
    held: FlightColumns = [[] for _ in FIELD_NAMES]
    nothing: FlightColumns = [[] for _ in FIELD_NAMES]
    first = job.first

    def send_block(block: FlightColumns, fraction: float) -> None:
        nonlocal first
        send(_built(block, first, job.comparison, fraction))
        first += len(block[0])

    for number, (columns, fraction) in enumerate(job.batches):
        if number % BATCHES_PER_SIGN == 0:  # a sign of life, should the ledger have all already
            send_block(nothing, fraction)
        new_columns = newcomers.among(columns) if newcomers else columns
        for previous, new in zip(held, new_columns, strict=True):
            previous.extend(new)
        while len(held[0]) >= MAX_TRANSACTIONS:
            block = [column[:MAX_TRANSACTIONS] for column in held]
            held = [column[MAX_TRANSACTIONS:] for column in held]
            send_block(block, fraction)
    send_block(held, 1.0)


def _built(
    flights: FlightColumns, first: int, comparison: SourceComparison, fraction: float
) -> Built:
    count = len(flights[0])
    columns = columns_from([*flights, [now_ms()] * count])
    content = content_of(columns)
    compressed = compress(content.body)
    foreseen = ForeseenRoot(first, transactions_root(columns, first))
    return Built(count, content.body, compressed, content.cells, foreseen, comparison, fraction)
