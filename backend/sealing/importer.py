"""Imports flights from a source into blocks, with two processes that work at the same time.

The builder (`block_builder`) makes the contents of blocks; this process gives the ids and seals,
and a thread of it writes the index, one batch behind. The service goes on meanwhile: flights that
are posted during an import get their ids between two batches and are sealed with them.

Whichever process dies, and whenever, the chain is valid, and running the import again continues it:
a row that says the same (`chain.identity`) as a flight that the ledger held when the import began
counts as imported already. So a file may be imported twice, or overlap with another.
"""

import fcntl
import gc
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from backend.base.errors import BadRow, FlightchainError, TryLater
from backend.base.settings import Settings
from backend.base.words import Report
from backend.chain.block_content import Content
from backend.chain.columns import decode_body
from backend.index.follower import Progress, no_progress
from backend.sealing.block_builder import Built, Job, Message, build
from backend.sealing.miner import Sealer, Unsealed
from backend.sealing.trusted_clock import LEAP_MS
from backend.sources.source import Source

BLOCKS_AT_ONCE = 32  # sealed with one sync, and indexed together
PIPE_BYTES = 2**20  # the pipe holds that many blocks, so that building and sealing overlap

_processes = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Tally:
    """What an import has done so far.

    imported, already_there, bad: flights. fraction: how much of the source has been read, 0 to 1.
    """

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
    """Import all flights of `source`. Returns what was done.

    on_bad: takes each bad row, which is then left out; without it the first one ends the import.
    on_progress: is called after each batch. report: takes messages about what was repaired, and
    about waiting for the clock. Raises BadRow, InvalidInput (the source cannot be read), TryLater
    (the disk is nearly full, or the clock leapt meanwhile), WriteFailed, Damage. Blocks that were
    sealed before stay.
    """
    tally = Tally()
    with closing(Sealer(settings, report)) as sealer:
        sealer.wait_for_clock()
        with sealer.writing(wait=True, progress=on_index_progress), _collector_off():
            job = Job(settings.folder, source, skip_bad=on_bad is not None)
            with sealer.index_behind():
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
    """Turn garbage collection off, because an import makes millions of tuples and no cycles."""
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
    """Raise TryLater if the builder made these blocks while the clock had leapt ahead."""
    times = [block.content.columns["timestamp"].values for block in blocks]
    newest = max(int(time or 0) for values in times for time in values)
    if newest - now > LEAP_MS:
        raise TryLater(
            "the clock jumped ahead during the import and is back now; the sealed blocks stay, so "
            "run the import again"
        )


def _batches(
    job: Job, tally: Tally, on_bad: Callable[[BadRow], None] | None
) -> Iterator[list[Built]]:
    """Yield the builder's blocks, up to `BLOCKS_AT_ONCE` at a time; an empty one is progress."""
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
                    yield batch  # flights before the error are imported
                raise message
            if len(batch) == BLOCKS_AT_ONCE:
                yield batch
                batch = []
        if batch:
            yield batch
    finally:
        ours.close()
        builder.kill()  # this is safe, because it writes nothing
        builder.join()


def _received(connection: Connection) -> Message:
    try:
        message: Message = connection.recv()
    except (EOFError, OSError):  # it may have died in the middle of a message
        raise FlightchainError(
            "the process that reads the source died; run the import again"
        ) from None
    return message
