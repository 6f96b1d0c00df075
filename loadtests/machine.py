"""Describes the machine of a measurement, and says who used its processor meanwhile. Linux only.

A machine is its processor, memory, kernel and file system. Who used the processor between two
moments (a service, we with our children, or others) is known of loads that are short and run in
children that have ended, such as a round of wrk; a run of Locust is sampled once a second by
`loadtests.machine_samples`. Foreign time is the same in both: the busy time of all cores, with
what the host of a virtual machine took, less the known use. Linux counts in ticks, mostly of 10 ms;
over a second, a difference is good to 2 or 3 % of a core. Source: proc(5), /proc/stat and
/proc/pid/stat.
"""

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import monotonic
from typing import Any

from backend.base.machine import processor
from loadtests.machine_samples import busy_s, cpu_s, used_s
from loadtests.processes import PROJECT, family


def description(folder: Path) -> dict[str, Any]:
    """Return facts about the machine, and the file system that `folder` lies on."""
    return {
        "cpu": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "ram_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "file_system": file_system(folder),
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
    }


def commit() -> str | None:
    """Return the commit that is measured; None without git."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607  the git that is installed
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return answer.stdout.strip() or None


def file_system(folder: Path, mounts: str | None = None) -> str:
    """Return type and device of the mount of `folder`; `mounts` as in /proc/self/mounts."""
    lines = (mounts or Path("/proc/self/mounts").read_text("utf-8")).splitlines()
    rows = (line.split()[:3] for line in lines)
    above = [row for row in rows if folder.resolve().is_relative_to(row[1])]
    if not above:
        return "unknown"
    # The deepest, and of several at one place the last, which hides the others.
    device, _, kind = max(reversed(above), key=lambda row: len(Path(row[1]).parts))
    return f"{kind} on {device}"


@contextmanager
def at_most_cores(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile run on no more than `count` cores."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@dataclass(frozen=True, slots=True)
class Usage:
    """Holds the processor time of the server, of us and our ended children, and of others."""

    wall_s: float
    server_s: float
    own_s: float
    foreign_s: float

    @property
    def foreign_cores(self) -> float:
        """Return how many cores other programs kept busy on average."""
        return self.foreign_s / self.wall_s


@dataclass(frozen=True, slots=True)
class Moment:
    """Holds the processor time used until a moment. server_s: by each process of the server."""

    at_s: float
    server_s: Mapping[int, float]
    own_s: float
    busy_s: float

    def until(self, later: "Moment") -> Usage:
        """Return what the processes that are there at `later` have used since this moment."""
        server_s = used_s(later.server_s, self.server_s)
        own_s = later.own_s - self.own_s
        foreign_s = later.busy_s - self.busy_s - server_s - own_s
        return Usage(later.at_s - self.at_s, server_s, own_s, max(0.0, foreign_s))


def moment(server_pid: int | None) -> Moment:
    """Return the present moment for the service with this process id; None: it is elsewhere."""
    used = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return Moment(
        monotonic(),
        {} if server_pid is None else cpu_s(family(server_pid)),
        sum(usage.ru_utime + usage.ru_stime for usage in used),
        busy_s(),
    )
