"""Tells what the miner is doing: the miner writes its status, workers and the supervisor read it.

`miner.json` in the chain's folder says when the next round is due and by when the miner will have
written it again (`due_s`). A miner that works for long writes it again and again, so a miner that
is overdue hangs. The file is small and not synced, and counts only while a process holds
`miner.lock`. Times that processes compare are those of CLOCK_MONOTONIC, which all processes of a
machine share and which no correction of the time of day moves.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from backend.base import files
from backend.base.clock import now_ms
from backend.base.errors import WriteFailed
from backend.base.state_file import StateFile
from backend.base.words import Report, Trouble

LOCK_NAME = "miner.lock"
STATUS_NAME = "miner.json"
SEALING_S = 30.0  # how long one piece of work may take: a sync of a disk that has to spin up
INDEXING_S = 600.0  # how long making an index may take, which may sync gigabytes at the end
OVERDUE_S = 4.0  # how late a miner may be on a busy machine before it counts as overdue


class MinerStatus(msgspec.Struct, frozen=True):
    """The status that the miner wrote last.

    next_block_at: when the next round is due, UTC milliseconds. due_s: by when it will have written
    again, monotonic seconds.
    """

    next_block_at: int
    pid: int
    due_s: float

    def overdue_s(self, monotonic_s: float) -> float:
        """Return how long the miner has been overdue at `monotonic_s`; 0 if it is not."""
        late_s = monotonic_s - self.due_s
        return late_s if late_s > OVERDUE_S else 0.0


_FILE = StateFile(STATUS_NAME, MinerStatus)


def miner_status(folder: Path) -> MinerStatus | None:
    """Return the status of the miner of the chain in `folder`; None if none runs or wrote one.

    A miner that runs without is starting or stopping, or has reported that it cannot write it.
    """
    return _FILE.read(folder) if files.is_locked(folder / LOCK_NAME) else None


def next_block_at(folder: Path) -> int | None:
    """Return when the miner's next round is due, UTC milliseconds; None if no miner runs."""
    status = miner_status(folder)
    return None if status is None else status.next_block_at


def why_no_miner(folder: Path) -> str:
    """Return what is wrong with the miner, and what to do; "" if nothing is."""
    status = miner_status(folder)
    if status is None:
        if files.is_locked(folder / LOCK_NAME):
            return f"the miner is starting, or cannot write {STATUS_NAME}; read its log"
        return (
            "no miner is running, so new flights stay pending; start the service or a miner; if "
            "a miner ends again and again, its messages say why"
        )
    if late_s := status.overdue_s(time.monotonic()):
        return (
            f"the miner hangs: process {status.pid} is {late_s:.0f} s late with its status, and "
            "new flights stay pending; restart it unless systemd or the service does"
        )
    return ""


class Announcer:
    """Writes the status of the miner, in the miner's process."""

    def __init__(self, folder: Path, report: Report) -> None:
        """report: takes a message when the file cannot be written."""
        self._folder = folder
        self._trouble = Trouble(report)
        self._status: MinerStatus | None = None

    def next_round(self, wait_s: float) -> None:
        """Announce that the miner does nothing until its next round, in `wait_s` seconds."""
        at = now_ms() + round(1000 * wait_s)
        self._write(MinerStatus(at, os.getpid(), time.monotonic() + wait_s))

    def working(self, for_s: float = SEALING_S) -> None:
        """Announce that the miner is at work; call this after every piece of work.

        The file is written only when half of the last announcement's time has passed. for_s: how
        long the next piece may take.
        """
        now_s, last = time.monotonic(), self._status
        if last is None or last.due_s <= now_s + for_s / 2:
            at = now_ms() if last is None else last.next_block_at
            self._write(MinerStatus(at, os.getpid(), now_s + for_s))

    def silent(self) -> None:
        """Remove the status, because the miner ends or cannot announce anything."""
        self._status = None
        with suppress(WriteFailed):  # a disk that refuses this is reported when it refuses to write
            files.remove(self._folder / STATUS_NAME)

    def _write(self, status: MinerStatus) -> None:
        try:
            _FILE.write_unsynced(self._folder, status)
            self._status = status
            self._trouble.end()
        except WriteFailed as error:
            self._trouble.report(f"{error}; mining continues")
            self.silent()  # with an old status, a working miner would look as if it hung
