"""Keeps the status of the cluster that this node sees: its process writes it, all others read it.

`cluster.json` in the chain's folder is small, not synced, and written every `EVERY_S`. It counts
only while it is fresh and a process holds `miner.lock`. So a node that hangs or is gone accepts
nothing, rather than keep what nobody will send.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from backend.base import files
from backend.base.errors import WriteFailed
from backend.base.state_file import StateFile
from backend.sealing.miner_status import LOCK_NAME

FILE_NAME = "cluster.json"
EVERY_S = 1.0
FRESH_S = 10.0
ENDED_S = -FRESH_S  # when the status of a process was written that has ended
READ_EVERY_S = 0.2

_NOT_RUNNING = (
    "the node of the cluster is not running, or hangs: start the service, or read why in its "
    "messages; nothing is accepted"
)


class ClusterStatus(msgspec.Struct, frozen=True):
    """Says what a node knows about its cluster.

    node: its name. engine_height: height of the engine's newest block. peers: the names of the
    members that are connected. votes: the weight of the votes of these and its own; votes_total:
    of all. catching_up: whether it still fetches blocks. lag_blocks: how many blocks of the engine
    it is behind the peer that is furthest. refusal: why nothing is accepted; "" if it is.
    written_s: monotonic seconds. reads_only: whether it is no member, and never accepts anything.
    """

    node: str
    engine_height: int
    peers: list[str]
    votes: int
    votes_total: int
    catching_up: bool
    lag_blocks: int
    refusal: str
    written_s: float
    reads_only: bool = False  # earlier releases do not write it

    @property
    def has_quorum(self) -> bool:
        """Whether more than two thirds of the votes are connected."""
        return 3 * self.votes > 2 * self.votes_total


FILE = StateFile(FILE_NAME, ClusterStatus)


def begin(folder: Path) -> None:
    """Remove the status of an earlier process; why one has ended holds until there is another."""
    if not end_in(folder):
        end(folder, "")


def end(folder: Path, why: str) -> None:
    """Write why the node has ended, or remove the status if it was stopped."""
    with suppress(WriteFailed):  # a status that is not fresh does not count; the log says why
        if why:
            FILE.write_unsynced(folder, ClusterStatus("", 0, [], 0, 0, True, 0, why, ENDED_S))
        else:
            files.remove(folder / FILE_NAME)


def end_in(folder: Path) -> str:
    """Return why the last process has ended, as it wrote; "" if it did not."""
    status = FILE.read(folder)
    return status.refusal if status is not None and status.written_s == ENDED_S else ""


class StatusReader:
    """Reads the status of the node of the chain in `folder`. It is safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._read_s = -READ_EVERY_S
        self._found: ClusterStatus | None = None

    def status(self) -> ClusterStatus | None:
        """Return the status; None if no node runs, or hangs."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._read_s >= READ_EVERY_S:
                is_running = files.is_locked(self._folder / LOCK_NAME)
                self._found = FILE.read(self._folder) if is_running else None
                self._read_s = now_s
            status = self._found
        return status if status is not None and now_s - status.written_s < FRESH_S else None

    def refusal(self) -> str:
        """Return why nothing is accepted now; "" if it is."""
        status = self.status()
        if status is not None:
            return status.refusal
        end = end_in(self._folder)
        return f"{_NOT_RUNNING}: {end}" if end else _NOT_RUNNING
