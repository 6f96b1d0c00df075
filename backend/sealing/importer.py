"""Imports flights from sources into blocks: all of them, or none if anything is wrong with one.

First children check all sources to their end (`source_check`); what is new is kept in a spool.
Then the blocks are made by two processes that work at the same time: the builder (`block_builder`)
makes their contents; this process gives the ids and seals, and a thread of it writes the index, one
batch behind. The service goes on meanwhile: flights that are posted during an import get their ids
between two batches and are sealed with them, and the import leaves them out of the next ones.

Whichever process dies, and whenever, the chain is valid, and running the import again continues it:
a row that says the same (`chain.identity`) as a flight that the ledger held when the import began,
in a block or in the mempool, counts as imported already. So a file may be imported twice, or
overlap with another, or with what was posted.
"""

import ctypes
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from backend.base.errors import BadRow, TryLater
from backend.base.progress import Progress, no_progress
from backend.base.settings import Settings
from backend.base.words import Report, counted
from backend.chain.columns import decode_body
from backend.chain.state import Content
from backend.sealing.block_builder import Built, Job, build
from backend.sealing.child import sent_by
from backend.sealing.newcomers import PostedMeanwhile, SourceComparison
from backend.sealing.repeats import Compared
from backend.sealing.sealer import Sealer, Unsealed, unsealed
from backend.sealing.source_check import Checked, check
from backend.sealing.spool import Spool
from backend.sealing.trusted_clock import LEAP_MS
from backend.sources.source import FlightColumns, Source, validated

M_MMAP_THRESHOLD = -3  # in malloc.h of glibc; see mallopt(3)
LARGE_BYTES = 1 << 20
BLOCKS_AT_ONCE = 32  # sealed with one sync, and indexed together: more delay a start after a kill


@dataclass(slots=True)
class Tally:
    """Counts what an import has done so far with a source.

    label: the source's. imported, already_there, conflicts, bad: flights. first, last: the ids of
    the first and the last that was imported. fraction: how much of what the check has left has been
    sealed, 0 to 1.
    """

    label: str
    imported: int = 0
    already_there: int = 0
    conflicts: int = 0
    bad: int = 0
    blocks: int = 0
    first: int | None = None
    last: int | None = None
    fraction: float = 0.0

    def add(self, count: int, blocks: int, end: int) -> None:
        """Count flights that were sealed in some blocks. end: the id after the last one."""
        if count:
            self.first, self.last = end - count if self.first is None else self.first, end - 1
        self.imported += count
        self.blocks += blocks


def require_good(sources: Sequence[Checked]) -> None:
    """Raise BadRow for the first bad row of `sources`, if there is any."""
    for checked in sources:
        bad = checked.bad
        if bad.count:
            first = bad.first[0]
            rows = f"{bad.count:,} of {counted(checked.rows, 'row is', 'rows are')} bad"
            raise BadRow(first.place, first.field, first.value, f"{first.reason} ({rows})")


@dataclass(frozen=True, slots=True)
class Watcher:
    """Is called by an import, in this order.

    on_check: again and again while a source is checked. on_compare: again and again while flights
    are compared that the sources have more than once. decide: with the results of all sources,
    before the first flight is stored; what it raises ends the import. on_progress: after each batch
    of blocks. on_done: when a source is imported. on_index_progress: while the index is brought to
    the tip. report: with messages about what was repaired, and about waiting for the clock.
    """

    on_check: Callable[[Checked], None] = lambda checked: None
    on_compare: Callable[[Compared], None] = lambda compared: None
    decide: Callable[[Sequence[Checked]], None] = require_good
    on_progress: Callable[[Tally], None] = lambda tally: None
    on_done: Callable[[Tally], None] = lambda tally: None
    on_index_progress: Progress = no_progress
    report: Report = lambda line: None


def import_all(
    settings: Settings,
    sources: Sequence[Source],
    watcher: Watcher = Watcher(),
    bad_rows: Spool | None = None,
) -> list[Tally]:
    """Import all flights of `sources`, one after the other. Returns what was done with each.

    bad_rows: takes the bad rows of all sources, before `watcher.decide` is called.
    Nothing is stored unless each source can be read to its end and `watcher.decide` returns; bad
    rows are left out then. Made-up flights are good, and need no check. Raises BadRow, InvalidInput
    (a source cannot be read), TryLater (the disk is nearly full, or the clock leapt meanwhile),
    WriteFailed, Damage. Blocks that were sealed before an error of the disk stay.
    """
    _return_large_pieces()
    with closing(Sealer(settings, watcher.report)) as sealer, _collector_off():
        sealer.wait_for_clock()
        with sealer.writing(wait=True, progress=watcher.on_index_progress, sign=False):
            _seal_pending(sealer)  # so that they are compared, too
            known = sealer.transactions()
        with closing(Spool(settings.folder)) as spool:
            checked = _check(settings, sources, spool, bad_rows, watcher)
            with sealer.writing(wait=True, progress=watcher.on_index_progress):
                _seal_pending(sealer)
                importing = _Importing(settings, sealer, spool, known, watcher)
                tallies = [importing.add(source) for source in checked]
                sealer.trim()
    return tallies


def _check(
    settings: Settings,
    sources: Sequence[Source],
    spool: Spool,
    bad_rows: Spool | None,
    watcher: Watcher,
) -> list[Checked | Source]:
    """Return what the check has found of each source, and made-up flights as they are.

    The writer lock is not held meanwhile, so a miner goes on.
    """
    unchecked = [source for source in sources if not source.is_made_up]
    if not unchecked:
        return list(sources)
    results = check(settings, unchecked, spool, bad_rows, watcher.on_check, watcher.on_compare)
    watcher.decide(results)
    checked = iter(results)
    return [source if source.is_made_up else next(checked) for source in sources]


class _Importing:
    """Seals the flights of one source after the other. Only inside `writing`."""

    def __init__(
        self, settings: Settings, sealer: Sealer, spool: Spool, known: int, watcher: Watcher
    ) -> None:
        """known: with how many transactions the check has compared."""
        self._settings = settings
        self._sealer = sealer
        self._spool = spool
        self._known = known
        self._watcher = watcher
        self._posted = PostedMeanwhile()
        self._imported = 0

    def add(self, source: Checked | Source) -> Tally:
        """Import what the check has left of a source, or made-up flights."""
        tally = Tally(source.label)
        if isinstance(source, Checked):
            tally.bad = source.bad.count
            job = self._job(source)
        else:
            batches = ((columns, source.progress()) for columns in validated(source))
            job = Job(self._settings.folder, self._sealer.transactions(), batches)
        meanwhile = SourceComparison()
        with self._sealer.index.behind():
            for batch, newest in _batches(job):
                if batch:
                    blocks = self._seal(batch, meanwhile)
                    count = sum(block.content.columns.count for block in blocks)
                    tally.add(count, len(blocks), self._sealer.transactions())
                left_out = newest.comparison  # by the builder, so far
                tally.already_there = left_out.already_there + meanwhile.already_there
                tally.conflicts = left_out.conflicts + meanwhile.conflicts
                tally.fraction = newest.fraction
                self._watcher.on_progress(tally)
        self._imported += tally.imported
        tally.fraction = 1.0
        self._watcher.on_done(tally)
        return tally

    def _seal(self, batch: Sequence[Built], meanwhile: SourceComparison) -> list[Unsealed]:
        """Seal what was posted, then the blocks of a batch without that. Returns these.

        meanwhile: counts what they are without.
        """
        sealer = self._sealer
        blocks = [
            Unsealed(
                Content(decode_body(built.body, built.count), built.body, built.cells),
                built.compressed_body,
                built.foreseen,
            )
            for built in batch
        ]
        with sealer.indexing_later():  # the index may take long, so the clock is asked afterwards
            sealer.wait_for_clock()
            _require_times_of_now(blocks, sealer.clock.now_ms())
            with sealer.mempool.exclusive():  # posts wait for the lock
                self._posted.add(sealer.seal_pending())
                blocks = [self._without_posted(block, meanwhile) for block in blocks]
                blocks = [block for block in blocks if block.content.columns.count]
                if blocks:
                    sealer.seal(blocks)
        return blocks

    def _without_posted(self, block: Unsealed, meanwhile: SourceComparison) -> Unsealed:
        columns = block.content.columns
        kept = self._posted.without(columns, meanwhile)
        return block if kept is columns else unsealed(kept)

    def _job(self, checked: Checked) -> Job:
        """Return the job to build blocks of what the check has left.

        It is compared again if others have added flights since.
        """
        first = self._sealer.transactions()
        has_others = first != self._known + self._imported
        return Job(
            self._settings.folder,
            first,
            _left_of(checked, self._spool),
            checked.comparison,
            is_compared=has_others,
        )


def _left_of(checked: Checked, spool: Spool) -> Iterator[tuple[FlightColumns, float]]:
    """Yield the flights that the check has left of a source, as a `Job` takes them."""
    start, end = checked.start, checked.end
    for batch in spool.batches(start, end):
        yield batch.read(), (batch.end - start) / (end - start)


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


def _return_large_pieces() -> None:
    """Let large pieces of memory return to the system as soon as they are freed, if this is glibc.

    Otherwise the largest piece that was freed so far, such as the table of heights, tells how large
    they have to be for that, and an import takes more memory the longer the chain is.
    """
    with suppress(OSError):
        if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
            mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


def _seal_pending(sealer: Sealer) -> None:
    """Seal the flights that were posted. Only inside `writing`."""
    sealer.wait_for_clock()
    with sealer.mempool.exclusive():
        sealer.seal_pending()


def _require_times_of_now(blocks: list[Unsealed], now: int) -> None:
    """Raise TryLater if the builder made these blocks while the clock had leapt ahead."""
    times = [block.content.columns["timestamp"].values for block in blocks]
    newest = max(int(time or 0) for values in times for time in values)
    if newest - now > LEAP_MS:
        raise TryLater(
            "the clock jumped ahead during the import and came back; run the import again to "
            "continue after the blocks that are sealed"
        )


def _batches(job: Job) -> Iterator[tuple[list[Built], Built]]:
    """Yield the builder's blocks, up to `BLOCKS_AT_ONCE` at a time, and its newest message.

    Without blocks the message says how far the builder is.
    """
    batch: list[Built] = []
    with closing(sent_by(partial(build, job))) as messages:
        for built in messages:
            if built.count:
                batch.append(built)
            elif not batch:
                yield [], built
            if len(batch) == BLOCKS_AT_ONCE:
                yield batch, built
                batch = []
        if batch:
            yield batch, built
