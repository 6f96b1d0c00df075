"""Notices that a child process hangs, though it has not ended.

A symptom is looked for again and again, and counts when it has been seen for some seconds of
looking. Seconds without a look do not count: if the whole service is stopped for a while, as by
`docker pause`, no process is taken to hang afterwards.
"""

import time
from collections.abc import Callable
from pathlib import Path

from backend.sealing.miner_status import miner_status

LOOK_COUNTS_S = 1.0  # a look counts for so long at most, however long ago the last one was
STOPPED_FOR_S = 8.0
OVERDUE_FOR_S = 2.0  # in addition to the seconds after which a miner counts as overdue

Symptom = Callable[[int], str]  # process id -> what is wrong with that process, "" if nothing is


class Watch:
    """Looks for one symptom in a process, and starts again when that has another id."""

    def __init__(
        self, symptom: Symptom, patience_s: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """patience_s: how many seconds of looking the symptom must last."""
        self._symptom = symptom
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._looked_at = self._bad_s = 0.0
        self._pid = 0

    def verdict(self, pid: int) -> str:
        """Return why process `pid` hangs; "" if it does not, or not for long enough."""
        now = self._monotonic()
        passed_s = min(LOOK_COUNTS_S, now - self._looked_at)
        bad_s = self._bad_s + passed_s if pid == self._pid else 0.0
        self._looked_at, self._pid = now, pid
        what = self._symptom(pid)
        self._bad_s = bad_s if what else 0.0
        return what if self._bad_s >= self._patience_s else ""


def stopped() -> Watch:
    """Return a watch for a process that was stopped by a signal and not continued."""
    return Watch(_is_stopped, STOPPED_FOR_S)


def _is_stopped(pid: int) -> str:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:  # it has ended, or there is no /proc: then this tells nothing
        return ""
    return "it was stopped" if state.rpartition(") ")[2].startswith("T") else ""


def overdue_miner(folder: Path) -> Watch:
    """Return a watch for a miner of the chain in `folder` that is overdue to write its status."""

    def symptom(pid: int) -> str:
        status = miner_status(folder)
        if status is None or status.pid != pid or not status.overdue_s(time.monotonic()):
            return ""
        return "it has not written its status for too long"

    return Watch(symptom, OVERDUE_FOR_S)
