"""A clock that leaps: years ahead and back again, as without a battery or with a wrong time server.

A small library in front of the system's gives the service another clock, whose offset stands in a
file. While it is years ahead nothing may be sealed with that time, because block times never go
back: all later blocks would have it, too. `/health/ready` says that the miner waits. When the clock
is right again, mining continues.
"""

import shutil
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backend.storage.block_store import BlockStore
from tests.api.processes import until
from tests.faults.auditing import audit
from tests.faults.clients import memories, posting
from tests.faults.house import WAIT_S, house_in
from tests.faults.report import Outcome, Task
from tests.flights import transactions_in

CLIENTS = 2
LEAPS_S = {"ten years ahead": 3650 * 86400, "ten years back": -3650 * 86400}
AWAY_S = 3.0  # how long the clock is wrong
RIGHT_WITHIN = timedelta(days=2)
CLOCK = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t which, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, which, now), before = errno;
    char text[32] = {0};
    int file = which == CLOCK_REALTIME ? open(getenv("CLOCK_OFFSET"), O_RDONLY) : -1;
    if (file >= 0) {
        if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
        close(file);
    }
    errno = before;
    return result;
}
"""


def built(folder: Path) -> Path:
    """The library that gives a process another clock."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def run(task: Task) -> Outcome:
    """Let the clock leap `task.count` times each way."""
    missing = "there is no cc; on Debian: apt install gcc libc6-dev"
    outcome = Outcome(skipped="" if shutil.which("cc") else missing)
    for number in range(0 if outcome.skipped else task.count):
        for name, leap_s in LEAPS_S.items():
            folder = task.folder / f"clock-{number}-{len(outcome.notes)}"
            folder.mkdir()
            _leap(folder, name, leap_s, outcome)
            outcome.done += 1
    return outcome


def _leap(folder: Path, name: str, leap_s: int, outcome: Outcome) -> None:
    offset = folder / "offset"
    offset.write_text("0")
    clock = {"LD_PRELOAD": str(built(folder)), "CLOCK_OFFSET": str(offset)}
    remembered = memories(CLIENTS)
    with house_in(folder, **clock) as house:
        house.restart(outcome)
        with posting(house.port, remembered, pause_s=0.05):
            until(lambda: transactions_in(house.folder) > 0, WAIT_S)
            offset.write_text(str(leap_s))
            time.sleep(AWAY_S)
            was_ready = house.is_ready()
            offset.write_text("0")
            mined = transactions_in(house.folder)
            until(lambda: transactions_in(house.folder) > mined, WAIT_S)
        if house.stop() != 0 or not house.seal_the_rest():
            outcome.add("refused", f"{name}: the service does not end well\n{house.log()}")
    audit(house.folder, remembered, outcome)
    _compare_times(house.folder, name, leap_s, outcome, was_ready=was_ready)


def _compare_times(
    folder: Path, name: str, leap_s: int, outcome: Outcome, *, was_ready: bool
) -> None:
    """No block may have the time of a clock that was ahead."""
    with closing(BlockStore(folder)) as store:
        newest_ms = store.block(store.height()).header.timestamp
    ahead = datetime.fromtimestamp(newest_ms / 1000, UTC) - datetime.now(UTC)
    outcome.notes.append(f"{name}: ready meanwhile: {was_ready}; the newest block is {ahead} ahead")
    if leap_s > 0 and ahead > RIGHT_WITHIN:
        outcome.add("wrong", f"{name}: a block has a time that is {ahead} ahead, for ever")
    if leap_s > 0 and was_ready:
        outcome.add("silent", f"{name}: ready, as if the clock were right")
