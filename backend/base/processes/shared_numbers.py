"""Counts numbers in several processes, each in a file of its own, for `/metrics` to add up.

A process has its file mapped into memory, so to count is to add to a number in memory: nothing is
sent or flushed, and the counts stay when the process is killed.

The file:

    4096 numbers of 8 bytes     doubles in the byte order of the machine
    names, a line each          JSON: lives, number of places, name of the metric, values of labels

Names are in the order of the numbers that they name. The first 32 numbers have no names and take
the counts for which there is no room. A process holds the lock of its file as long as it lives. A
new process takes over a file whose process has died, and goes on with its counts, so there are
never more files than there were processes at once. A number that is only true while its process
lives (`lives`: memory, requests in progress) starts at zero then, and counts as zero while no
process holds the file.

The folder should be in memory, because it is written all the time. The supervisor makes one for
each run in /dev/shm, or where temporary files go, and removes it (`run_folder`).

The multiprocess mode of prometheus_client (0.26.0) takes 10 times as long for a request, leaves
three files for each worker that has died, and cannot tell that one has died whose role runs apart:
its requests in progress would stay in the sums.
"""

import fcntl
import json
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
from pathlib import Path
from typing import NamedTuple

from backend.base import files
from backend.base.errors import FlightchainError, TryLater
from backend.base.settings import AUTO, Settings

Key = tuple[str, ...]  # name of the metric, values of its labels
Totals = dict[Key, list[float]]

PLACES, UNNAMED = 4096, 32
MOST_PROCESSES = 1024
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
HISTOGRAM_PLACES = len(BOUNDS_S) + 2  # a count for each bound, one beyond them, and the sum
SUM = HISTOGRAM_PLACES - 1

_NUMBER_BYTES = 8
_NAMES_AT = PLACES * _NUMBER_BYTES
FILE_BYTES = _NAMES_AT + 96 * 1024
_LAYOUT = zlib.crc32(repr((PLACES, UNNAMED, FILE_BYTES, BOUNDS_S)).encode())
SUFFIX = f".{_LAYOUT:08x}.numbers"  # files of another layout are neither taken over nor added up

_log = logging.getLogger(__name__)


class Numbers:
    """The numbers of one process: in its own memory, and after `share` where others can read them.

    They are safe for threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[int, float] = {}
        self._use(memoryview(bytearray(FILE_BYTES)))

    def _use(self, whole: memoryview) -> None:
        """Count in `whole`, where another process may have counted before."""
        self._whole = whole
        self._values = whole[:_NAMES_AT].cast("d")
        named = list(_named(whole))
        self._places = {number.key: number.place for number in named}
        self._next_place = max([UNNAMED, *(number.place + number.width for number in named)])
        self._names_end = _names_end(whole)
        whole[self._names_end :] = bytes(FILE_BYTES - self._names_end)  # drops a half-written name
        for number in named:
            if number.lives:
                start = number.place * _NUMBER_BYTES
                end = start + number.width * _NUMBER_BYTES
                whole[start:end] = bytes(end - start)

    def share(self, folder: Path, role: str) -> bool:
        """Count in a file in `folder` from now on. Call this before anything is counted.

        Returns whether that could be done. If not, it is logged, and `/metrics` leaves out this
        process.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._use(_mapped(folder, role))
        except (OSError, FlightchainError) as error:
            _log.warning("the metrics leave out this process (%s): %s", role, error)
            return False
        return True

    def place(self, *key: str, count: int = 1, lives: bool = False) -> int:
        """Return the place of the number of this name, or of the first of `count`; made if needed.

        lives: whether it is only true while this process lives.
        """
        with self._lock:
            place = self._places.get(key)
            if place is None:
                place = self._places[key] = self._made(key, count, lives=lives)
            return place

    def _made(self, key: Key, count: int, *, lives: bool) -> int:
        line = json.dumps([lives, count, *key]).encode() + b"\n"
        end = self._names_end + len(line)
        if end > FILE_BYTES or self._next_place + count > PLACES:
            _log.warning("the metrics leave out %s, because they are full", key)
            return 0
        self._whole[self._names_end : end] = line
        self._names_end = end
        self._next_place += count
        return self._next_place - count

    def histogram(self, *key: str) -> int:
        """Return the place of the histogram with this name; made if needed."""
        return self.place(*key, count=HISTOGRAM_PLACES)

    def add(self, place: int, amount: float = 1.0) -> None:
        with self._lock:
            self._values[place] += amount

    def set(self, place: int, value: float) -> None:
        """Set the number at this place, which may go down."""
        with self._lock:
            self._values[place] = value

    def follow(self, place: int, count: float) -> None:
        """Follow a count that this process keeps elsewhere: add its growth since the last call."""
        with self._lock:
            self._values[place] += count - self._seen.get(place, 0.0)
            self._seen[place] = count

    def observe(self, histogram: int, seconds: Sequence[float]) -> None:
        """Count durations, in seconds, in the histogram at this place."""
        with self._lock:
            for duration in seconds:
                self._values[histogram + bisect_left(BOUNDS_S, duration)] += 1
            self._values[histogram + SUM] += sum(seconds)

    def totals(self) -> Totals:
        """Return the numbers of this process alone."""
        totals: Totals = {}
        _add_up(totals, bytes(self._whole), is_alive=True)
        return totals


def totals(folder: Path) -> Totals:
    """Return the numbers of all processes that share `folder`, added up."""
    totals: Totals = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        is_alive = files.is_locked(path)
        data = path.read_bytes()
        if len(data) == FILE_BYTES:  # else it is just being made
            _add_up(totals, data, is_alive=is_alive)
    return totals


def _add_up(totals: Totals, data: bytes, *, is_alive: bool) -> None:
    values = memoryview(data)[:_NAMES_AT].cast("d")
    for number in _named(data):
        sums = totals.setdefault(number.key, [0.0] * number.width)
        if is_alive or not number.lives:
            for i, value in enumerate(values[number.place : number.place + number.width]):
                sums[i] += value


class _Named(NamedTuple):
    key: Key
    place: int
    width: int
    lives: bool


def _named(data: bytes | memoryview) -> Iterator[_Named]:
    place = UNNAMED
    for line in bytes(data[_NAMES_AT : _names_end(data)]).splitlines():
        lives, count, *key = json.loads(line)
        yield _Named(tuple(key), place, count, lives)
        place += count


def _names_end(data: bytes | memoryview) -> int:
    return _NAMES_AT + bytes(data[_NAMES_AT:]).rfind(b"\n") + 1


def _mapped(folder: Path, role: str) -> memoryview:
    """Map a file that no other process holds into memory; it stays locked while it is mapped."""
    for number in range(MOST_PROCESSES):
        descriptor = os.open(folder / f"{role}-{number}{SUFFIX}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.posix_fallocate(descriptor, 0, FILE_BYTES)  # a full disk must show here
            return memoryview(mmap.mmap(descriptor, FILE_BYTES))
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)  # the map has a copy of it, which keeps the lock
    raise TryLater(f"{folder} already has the numbers of {MOST_PROCESSES} processes")


# --- what processes count ------------------------------------------------------------------------


class OwnUse:
    """Counts the processor time and memory of this process."""

    def __init__(self, numbers: Numbers, role: str) -> None:
        self._numbers = numbers
        self._processes = numbers.place(PROCESSES, role, lives=True)
        self._cpu = numbers.place(PROCESS_CPU, role)
        self._memory = numbers.place(PROCESS_MEMORY, role, lives=True)

    def sample(self) -> None:
        """Note what is used now, which takes some microseconds."""
        self._numbers.set(self._processes, 1)
        self._numbers.follow(self._cpu, time.process_time())
        with suppress(OSError):  # without /proc or a free descriptor the old number stays
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            self._numbers.set(self._memory, pages * mmap.PAGESIZE)


class MinerNumbers:
    """The miner's numbers: blocks, how long they took, index rebuilds, and its own use."""

    def __init__(self) -> None:
        self._numbers = Numbers()

    def start(self, settings: Settings) -> None:
        """Share the numbers if there is a folder for them. Call this in the miner's process."""
        if settings.metrics_dir != AUTO:
            self._numbers.share(Path(settings.metrics_dir), "miner")
        self._duration = self._numbers.histogram(SEAL_DURATION)
        self._blocks = self._numbers.place(BLOCKS_SEALED)
        self._transactions = self._numbers.place(TRANSACTIONS_SEALED)
        self._rebuilds = self._numbers.place(INDEX_REBUILDS)
        self._use = OwnUse(self._numbers, "miner")
        self._use.sample()

    def sealed(self, transactions: int, seconds: float) -> None:
        self._numbers.observe(self._duration, [seconds])
        self._numbers.add(self._blocks)
        self._numbers.add(self._transactions, transactions)

    def sample(self, index_rebuilds: int) -> None:
        """Note what is used now, and how often the index was rebuilt so far."""
        self._numbers.follow(self._rebuilds, index_rebuilds)
        self._use.sample()


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
