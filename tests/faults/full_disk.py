"""A disk that becomes full while the service works, and has room again.

The chain lies on a small file system in memory, and the reserve that the service keeps free is set
to nearly nothing, so that writes really fail. Posts are refused with 503 then, in words, and go on
when there is room again; nothing that was acknowledged is missing.
"""

import errno
import os
import time
from pathlib import Path

from tests.api.processes import until
from tests.faults.auditing import conclude
from tests.faults.clients import Memory, memories, posting
from tests.faults.disks import mounted
from tests.faults.house import WAIT_S, House
from tests.faults.report import Outcome, Task

CLIENTS = 4
DISK_BYTES = 64 * 2**20
FULL_S = (0.3, 1.0)
ROOM_S = 0.5
PIECE = bytes(4096)


def run(task: Task) -> Outcome:
    """Let the disk be full `task.count` times."""
    outcome = Outcome(skipped="" if os.geteuid() == 0 else "only root may mount")
    if outcome.skipped:
        return outcome
    with mounted(task.folder / "disk", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs") as disk:
        remembered = memories(CLIENTS)
        with House(disk / "chain", task.folder, {"FLIGHTCHAIN_MIN_FREE_BYTES": "1"}) as house:
            house.restart(outcome)
            with posting(house.port, remembered):
                for _ in range(task.count):
                    fill(disk)
                    time.sleep(task.chance.uniform(*FULL_S))
                    (disk / "ballast").unlink()
                    time.sleep(ROOM_S)
                    outcome.done += 1
                _wait_until_posts_go_on(remembered, outcome)
            conclude(house, remembered, task.chance, outcome)
    refused = sum(len(memory.refused) for memory in remembered)
    outcome.notes.append(f"posts that were refused with 503: {refused}")
    return outcome


def fill(disk: Path) -> None:
    """Write until there is no room."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        try:
            while file.write(PIECE) == len(PIECE):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def _wait_until_posts_go_on(remembered: list[Memory], outcome: Outcome) -> None:
    """Wait until every client has been acknowledged another flight."""
    before = [len(memory.acknowledged) for memory in remembered]
    took_s = until(
        lambda: all(len(m.acknowledged) > n for m, n in zip(remembered, before, strict=True)),
        WAIT_S,
    )
    outcome.notes.append(f"posts go on after {took_s:.1f} s")
