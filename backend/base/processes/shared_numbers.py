"""Counts numbers in several processes, each with a file of its own, for `/metrics` to add up.

A process counts in its own memory, and writes all of its numbers into its file once a second
(`write`), in one step. So readers see a file whole, the numbers of another process are up to a
second old, and a process that is killed loses its last second at most. A miner writes between its
rounds alone.

A process holds the lock beside its file as long as it lives. A new process takes over a file whose
process has died, and goes on with its counts, so there are never more files than there were
processes at once, and a count is in one file. A gauge (memory, requests in progress) is only true
while its process lives: it counts as zero while nobody holds the lock.

The folder should be in memory, because it is written all the time. The supervisor makes one for
each run in /dev/shm, or where temporary files go, and removes it (`run_folder`).

The multiprocess mode of prometheus_client (0.26.0) takes 10 times as long for a request, leaves
three files for each worker that has died, and cannot tell that one has died whose role runs apart:
its requests in progress would stay in the sums.
"""

import logging
import mmap
import os
import shutil
import tempfile
import threading
import time
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import add
from pathlib import Path

import msgspec

from backend.base import files
from backend.base.errors import FlightchainError, TryLater, WriteFailed, WriterBusy
from backend.base.settings import AUTO, Settings
from backend.base.state_file import StateFile
from backend.base.words import Trouble

Key = tuple[str, ...]  # name of the metric, values of its labels
Totals = dict[Key, list[float]]

MOST_PROCESSES = 1024
WRITE_EVERY_S = 1.0
MEMORY = Path("/dev/shm")  # noqa: S108  mkdtemp makes the name and the rights
PREFIX, LOCK_NAME = "flightchain-metrics-", "run.lock"
LEFT_BEHIND_S = 60

SEAL_DURATION = "flightchain_seal_duration_seconds"
BLOCKS_SEALED = "flightchain_blocks_sealed_total"
TRANSACTIONS_SEALED = "flightchain_transactions_sealed_total"
INDEX_REBUILDS = "flightchain_index_rebuilds_total"
PROCESSES = "flightchain_processes"
PROCESS_CPU = "flightchain_process_cpu_seconds_total"
PROCESS_MEMORY = "flightchain_process_resident_memory_bytes"

# The upper bounds of histograms in seconds, from 0.1 ms to 1 min.
BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
HISTOGRAM_COUNTS = len(BOUNDS_S) + 2  # one for each bound, one beyond them, and the sum
SUM = HISTOGRAM_COUNTS - 1

# Files with other bounds are neither taken over nor added up.
SUFFIX = f".{zlib.crc32(repr(BOUNDS_S).encode()):08x}.json"

_log = logging.getLogger(__name__)


class _Written(msgspec.Struct):
    """The numbers of a process in its file; JSON has no objects with such keys."""

    counts: list[tuple[Key, list[float]]] = []
    gauges: list[tuple[Key, float]] = []


_FILE = StateFile(SUFFIX, _Written)  # behind the name of its process


class Numbers:
    """The numbers of one process, in its memory and after `share` in a file, too.

    They are safe for threads. A count begins with zero when it is first named.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Totals = {}
        self._gauges: dict[Key, float] = {}
        self._followed: dict[Key, float] = {}
        self.file_lock: files.FileLock | None = None
        self._trouble = Trouble(_log.warning)

    def share(self, folder: Path, role: str) -> bool:
        """Count in a file in `folder` from now on. Call this before anything is counted.

        Returns whether that could be done. If not, it is logged, and `/metrics` leaves out this
        process.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.file_lock = _free_lock(folder, role)
        except (OSError, FlightchainError) as error:
            _log.warning("the metrics leave out this process (%s): %s", role, error)
            return False
        if written := _FILE.named(self.file_lock.path.stem).read(folder):
            self._counts = dict(written.counts)
        self.write()
        return True

    def write(self) -> None:
        """Write the numbers where other processes find them. What keeps it from that is logged."""
        if self.file_lock is None:
            return
        path = self.file_lock.path
        with self._lock:  # also because threads may not replace a file at once
            written = _Written(list(self._counts.items()), list(self._gauges.items()))
            try:
                _FILE.named(path.stem).write_unsynced(path.parent, written)
                self._trouble.end()
            except WriteFailed as error:
                self._trouble.report(f"the metrics of this process are old: {error}")

    def _count(self, key: Key, width: int = 1) -> list[float]:
        return self._counts.setdefault(key, [0.0] * width)

    def add(self, key: Key, amount: float = 1.0) -> None:
        with self._lock:
            self._count(key)[0] += amount

    def set(self, key: Key, value: float) -> None:
        """Set a gauge, which is true while this process lives."""
        with self._lock:
            self._gauges[key] = value

    def follow(self, key: Key, count: float) -> None:
        """Follow a count that this process keeps elsewhere: add its growth since the last call."""
        with self._lock:
            self._count(key)[0] += count - self._followed.get(key, 0.0)
            self._followed[key] = count

    def observe(self, key: Key, seconds: Sequence[float]) -> None:
        """Count durations, in seconds, in a histogram."""
        with self._lock:
            histogram = self._count(key, HISTOGRAM_COUNTS)
            for duration in seconds:
                histogram[bisect_left(BOUNDS_S, duration)] += 1
            histogram[SUM] += sum(seconds)

    def totals(self) -> Totals:
        """Return the numbers of this process alone."""
        with self._lock:
            counts = {key: count.copy() for key, count in self._counts.items()}
            return counts | {key: [value] for key, value in self._gauges.items()}


def totals(folder: Path) -> Totals:
    """Return the numbers of all processes that share `folder`, added up."""
    totals: Totals = {}
    for lock in sorted(folder.glob("*-*.lock")):
        is_alive = files.is_locked(lock)
        written = _FILE.named(lock.stem).read(folder) or _Written()  # it is just being made
        gauges = [(key, [value * is_alive]) for key, value in written.gauges]
        for key, values in written.counts + gauges:
            sums = totals.setdefault(key, [0.0] * len(values))
            sums[:] = map(add, sums, values)
    return totals


def _free_lock(folder: Path, role: str) -> files.FileLock:
    """Take the first lock of this role that no other process holds."""
    for number in range(MOST_PROCESSES):
        lock = files.FileLock(folder / f"{role}-{number}.lock")
        with suppress(WriterBusy):
            lock.acquire(wait=True, within_s=0.0)
            return lock
    raise TryLater(f"{folder} already has the numbers of {MOST_PROCESSES} processes")


# --- what processes count ------------------------------------------------------------------------


def note_own_use(numbers: Numbers, role: str) -> None:
    """Note the processor time and memory of this process, which takes some microseconds."""
    numbers.set((PROCESSES, role), 1)
    numbers.follow((PROCESS_CPU, role), time.process_time())
    with suppress(OSError):  # without /proc or a free descriptor the old number stays
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        numbers.set((PROCESS_MEMORY, role), pages * mmap.PAGESIZE)


class MinerNumbers:
    """The miner's numbers: blocks, how long they took, index rebuilds, and its own use."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._write_at_s = 0.0

    def start(self, settings: Settings) -> None:
        """Share the numbers if there is a folder for them. Call this in the miner's process."""
        if settings.metrics_dir != AUTO:
            self._numbers.share(Path(settings.metrics_dir), "miner")
        self._add(0, 0, [])  # so that all are there from the beginning
        self.sample(0)

    def _add(self, blocks: int, transactions: int, seconds: Sequence[float]) -> None:
        self._numbers.observe((SEAL_DURATION,), seconds)
        self._numbers.add((BLOCKS_SEALED,), blocks)
        self._numbers.add((TRANSACTIONS_SEALED,), transactions)

    def sealed(self, transactions: int, seconds: float) -> None:
        self._add(1, transactions, [seconds])
        self._numbers.write()

    def sample(self, index_rebuilds: int) -> None:
        """Note once a second what is used, and how often the index was rebuilt so far."""
        now_s = time.monotonic()
        if now_s >= self._write_at_s:
            self._write_at_s = now_s + WRITE_EVERY_S
            self._numbers.follow((INDEX_REBUILDS,), index_rebuilds)
            note_own_use(self._numbers, "miner")
            self._numbers.write()


# --- the folder of a run -------------------------------------------------------------------------


@contextmanager
def run_folder(settings: Settings) -> Iterator[Path | None]:
    """Return where the processes of a run count: the folder in the settings, or a new one.

    A new folder is removed at the end by the process that made it, not by processes that it has
    forked; the next service that starts removes what a killed one left behind. If the folder cannot
    be made, that is logged, and None is yielded, because the service works without metrics.
    """
    if settings.metrics_dir != AUTO:
        yield Path(settings.metrics_dir)
        return
    try:
        folder = _new_folder()
        lock = files.FileLock(folder / LOCK_NAME)
        lock.acquire(wait=True)
    except (OSError, FlightchainError) as error:
        _log.warning("the metrics are only those of the worker that answers: %s", error)
        yield None
        return
    maker = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == maker:
            lock.release()
            shutil.rmtree(folder, ignore_errors=True)


def _new_folder() -> Path:
    parent = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _remove_left_behind(parent)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))


def _remove_left_behind(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it belongs to another user, or another service removes it
            is_new = time.time() - folder.stat().st_mtime < LEFT_BEHIND_S
            if not is_new and not files.is_locked(folder / LOCK_NAME):
                shutil.rmtree(folder)
