"""Who used the processor between two moments: a service, this process with its children, others.

What others used is what is left of the whole: busy time of the cores that this process may use,
less the two that are known. Linux counts the whole in ticks, mostly of 10 ms; over a second, a
difference is good to 2 or 3 % of a core. What the host of a virtual machine took is told apart.

Source: proc(5), /proc/stat and /proc/pid/stat.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import monotonic

from loadtests.processes import family

_STAT = Path("/proc/stat")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used over `wall_s`. server_s, own_s, foreign_s: seconds of processor time.

    own_s: of this process and its children that have ended. stolen_s: taken away by the host.
    """

    wall_s: float
    server_s: float
    own_s: float
    foreign_s: float
    stolen_s: float

    @property
    def foreign_cores(self) -> float:
        """How many cores others kept busy on average."""
        return self.foreign_s / self.wall_s

    @property
    def stolen_cores(self) -> float:
        """How many cores the host took away on average."""
        return self.stolen_s / self.wall_s


@dataclass(frozen=True, slots=True)
class Moment:
    """What had been used when it was taken."""

    at_s: float
    server_s: float
    own_s: float
    busy_s: float
    stolen_s: float

    def until(self, later: "Moment") -> Usage:
        """What was used from here to `later`."""
        server_s, own_s = later.server_s - self.server_s, later.own_s - self.own_s
        return Usage(
            later.at_s - self.at_s,
            server_s,
            own_s,
            max(0.0, later.busy_s - self.busy_s - server_s - own_s),
            later.stolen_s - self.stolen_s,
        )


def moment(server_pid: int) -> Moment:
    """What has been used so far, by the service of `server_pid` and everybody else."""
    busy_s, stolen_s = cores_used(_STAT.read_text(encoding="ascii"), os.sched_getaffinity(0))
    ours = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    own_s = sum(one.ru_utime + one.ru_stime for one in ours)
    return Moment(monotonic(), sum(map(process_s, family(server_pid))), own_s, busy_s, stolen_s)


def cores_used(stat: str, cores: set[int]) -> tuple[float, float]:
    """Seconds that `cores` were busy, and seconds that the host took, by the text of /proc/stat."""
    busy = stolen = 0
    for line in stat.splitlines():
        name, *words = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, words[:8])
            busy += user + nice + system + irq + softirq
            stolen += steal
    return busy / _TICKS_PER_S, stolen / _TICKS_PER_S


def process_s(pid: int) -> float:
    """Processor seconds of a process and its children that it waited for; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    # the name in parentheses may hold anything, so count from its end
    return sum(map(int, text.rpartition(")")[2].split()[11:15])) / _TICKS_PER_S
