"""Who used the processor between two moments: a service, this process with its children, others.

For what is short and runs in children that have ended, such as a round of wrk; a run of Locust is
sampled once a second by `loadtests.generation.samples`, and what is foreign is the same here: busy
time of all cores, with what the host of a virtual machine took, less what is known. Linux counts it
in ticks, mostly of 10 ms; over a second, a difference is good to 2 or 3 % of a core.

Source: proc(5), /proc/stat and /proc/pid/stat.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import monotonic

from loadtests.generation.samples import core_ticks, cpu_s
from loadtests.processes import family

_STAT = Path("/proc/stat")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used over `wall_s`. server_s, own_s, foreign_s: seconds of processor time.

    own_s: of this process and its children that have ended.
    """

    wall_s: float
    server_s: float
    own_s: float
    foreign_s: float

    @property
    def foreign_cores(self) -> float:
        """How many cores others kept busy on average."""
        return self.foreign_s / self.wall_s


@dataclass(frozen=True, slots=True)
class Moment:
    """What had been used when it was taken."""

    at_s: float
    server_s: float
    own_s: float
    busy_s: float

    def until(self, later: "Moment") -> Usage:
        """What was used from here to `later`."""
        server_s, own_s = later.server_s - self.server_s, later.own_s - self.own_s
        foreign_s = later.busy_s - self.busy_s - server_s - own_s
        return Usage(later.at_s - self.at_s, server_s, own_s, max(0.0, foreign_s))


def moment(server_pid: int) -> Moment:
    """What has been used so far, by the service of `server_pid` and everybody else."""
    ours = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    busy = sum(busy for busy, _ in core_ticks(_STAT.read_text(encoding="ascii")))
    return Moment(
        monotonic(),
        sum(cpu_s(family(server_pid)).values()),
        sum(one.ru_utime + one.ru_stime for one in ours),
        busy / _TICKS_PER_S,
    )
