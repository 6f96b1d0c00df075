"""Tells who used the processor between two moments: a service, we with our children, or others.

It is for loads that are short and run in children that have ended, such as a round of wrk; a run of
Locust is sampled once a second by `loadtests.generation.samples`. Foreign time is the same in both:
the busy time of all cores, with what the host of a virtual machine took, less the known use. Linux
counts in ticks, mostly of 10 ms; over a second, a difference is good to 2 or 3 % of a core.

Source: proc(5), /proc/stat and /proc/pid/stat.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import monotonic

from loadtests.generation.samples import TICKS_PER_S, core_ticks, cpu_s, used_s
from loadtests.processes import family


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time used over `wall_s`, in seconds: by the server, by us, and by others.

    own_s: of this process and its children that have ended.
    """

    wall_s: float
    server_s: float
    own_s: float
    foreign_s: float

    @property
    def foreign_cores(self) -> float:
        """How many cores other programs kept busy on average."""
        return self.foreign_s / self.wall_s


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment, and the processor time that had been used until then.

    server_s: of each process of the server, by its id.
    """

    at_s: float
    server_s: Mapping[int, float]
    own_s: float
    busy_s: float

    def until(self, later: "Moment") -> Usage:
        """The time used from this moment to `later`, by the processes that are there then."""
        server_s = used_s(later.server_s, self.server_s)
        own_s = later.own_s - self.own_s
        foreign_s = later.busy_s - self.busy_s - server_s - own_s
        return Usage(later.at_s - self.at_s, server_s, own_s, max(0.0, foreign_s))


def moment(server_pid: int | None) -> Moment:
    """The present moment, for the service with this process id; None: it is on another machine."""
    ours = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return Moment(
        monotonic(),
        {} if server_pid is None else cpu_s(family(server_pid)),
        sum(one.ru_utime + one.ru_stime for one in ours),
        sum(busy for busy, _ in core_ticks()) / TICKS_PER_S,
    )
