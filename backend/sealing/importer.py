"""Importing flights from a source into blocks, as two processes that work at the same time.

The builder (`builder`) makes blocks to be; this process gives the ids, seals, and writes the index.
The service goes on meanwhile: what is posted during an import gets its ids between two batches and
is sealed with them.

Whatever dies and whenever, the chain is valid, and running the import again continues it: a row
that equals a flight the ledger held when the import began (in all 19 fields) is taken as imported
already. So a file may be imported twice, or overlap with another.
"""

import fcntl
import gc
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from backend.chain.columns import decode_body
from backend.chain.content import Content
from backend.errors import BadRow, FlightchainError, TryLater
from backend.index.follower import Progress, no_progress
from backend.sealing.block_builder import Built, Job, Message, build
from backend.sealing.miner import Report, Sealer, Unsealed
from backend.sealing.trusted_clock import LEAP_MS
from backend.settings import Settings
from backend.sources.source import Source

BLOCKS_AT_ONCE = 16  # sealed with one sync
PIPE_BYTES = 2**20  # holds as many blocks, so that building and sealing overlap

_processes = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Tally:
    """What an import has done so far. fraction: of the source that has been read, 0 to 1."""

    imported: int = 0
    already_there: int = 0
    bad: int = 0
    blocks: int = 0
    fraction: float = 0.0


def import_flights(
    settings: Settings,
    source: Source,
    *,
    on_bad: Callable[[BadRow], None] | None = None,
    on_progress: Callable[[Tally], None] = lambda tally: None,
    on_index_progress: Progress = no_progress,
    report: Report = lambda line: None,
) -> Tally:
    """Import all flights of `source`; what was done.

    on_bad: takes each bad row, which is then left out; without it the first one ends the import.
    on_progress: called after each batch. report: takes, besides what was put right, that the clock
    is waited for. Raises BadRow, InvalidInput (the source cannot be read), TryLater (disk nearly
    full, or the clock leapt meanwhile), WriteFailed, Damage. What was sealed before stays.
    """
    tally = Tally()
    with closing(Sealer(settings, report)) as sealer:
        sealer.wait_for_clock()
        with sealer.writing(wait=True, progress=on_index_progress), _collector_off():
            job = Job(settings.folder, source, skip_bad=on_bad is not None)
            for batch in _batches(job, tally, on_bad):
                if batch:
                    _seal(sealer, batch)
                tally.imported += sum(built.count for built in batch)
                tally.blocks += len(batch)
                on_progress(tally)
            sealer.trim()
    return tally


@contextmanager
def _collector_off() -> Iterator[None]:
    """No garbage collection: an import makes millions of tuples and no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _seal(sealer: Sealer, batch: list[Built]) -> None:
    blocks = [
        Unsealed(
            Content(decode_body(built.body, built.count), built.body, built.cells),
            built.compressed_body,
        )
        for built in batch
    ]
    sealer.wait_for_clock()
    _require_times_of_now(blocks, sealer.clock.now_ms())
    with sealer.mempool.exclusive():
        sealer.seal_pending()
        sealer.seal(blocks)


def _require_times_of_now(blocks: list[Unsealed], now: int) -> None:
    """Raise TryLater for blocks that the builder made while the clock had leapt ahead."""
    times = [block.content.columns["timestamp"].values for block in blocks]
    newest = max(int(time or 0) for values in times for time in values)
    if newest - now > LEAP_MS:
        raise TryLater(
            "the clock leapt ahead during the import and is back now; what was sealed before "
            "stays, run the import again"
        )


def _batches(
    job: Job, tally: Tally, on_bad: Callable[[BadRow], None] | None
) -> Iterator[list[Built]]:
    """What the builder builds, up to `BLOCKS_AT_ONCE` blocks; none is a sign of progress."""
    ours, theirs = _processes.Pipe(duplex=False)
    fcntl.fcntl(ours.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    builder = _processes.Process(target=build, args=(job, ours, theirs))
    builder.start()
    theirs.close()
    batch: list[Built] = []
    try:
        while (message := _received(ours)) is not None:
            if isinstance(message, Built):
                tally.already_there, tally.fraction = message.already_there, message.fraction
                if message.count:
                    batch.append(message)
                elif not batch:
                    yield []
            elif isinstance(message, BadRow) and on_bad is not None:
                on_bad(message)
                tally.bad += 1
            else:
                if batch:
                    yield batch  # what was good before the error stays
                raise message
            if len(batch) == BLOCKS_AT_ONCE:
                yield batch
                batch = []
        if batch:
            yield batch
    finally:
        ours.close()
        builder.kill()  # it writes nothing
        builder.join()


def _received(connection: Connection) -> Message:
    try:
        message: Message = connection.recv()
    except (EOFError, OSError):  # also in the middle of a message
        raise FlightchainError("the process that reads the source died; run again") from None
    return message
