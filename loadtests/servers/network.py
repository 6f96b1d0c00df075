"""The queueing network of report 000 as a server with known service times, to compare with MVA.

    GET /interaction[?seed=N]   lets a customer go through the network, without think time
    GET /told                   lists the times of interactions that ended since the last request

The route is the report's deterministic one. The CPU is visited first; then 26 times the cache is
filled with 19 blocks (each DISK, then DELAY) and the CPU looks at 19 blocks; the 27th time it is
filled, and the CPU looks at the last 28 blocks, 19 of which were in the other cache all the time.
That makes 523, 513 and 513 visits, of 0.8, 46 and 39 ms on average, all divided by K: demands of
0.4184, 23.598 and 20.007 s at K = 1. With exponential times such a network has the product form of
the report's probabilistic one (same visits, same means at a station: Kelly 1975, BCMP 1975), so
exact MVA holds for it. It does not hold for times that vary little; throughput is then close to the
asymptotes.

Each visit draws its own service time: gamma with `cv`, so 1 is exponential and 0 deterministic.
`group` = 19 joins 19 visits in a row to one (a filling is one DISK visit of 19 × 46 ms on average,
then one DELAY visit). This makes fewer waits for a slow machine and the same demands, but another
network unless times are exponential. The seed of an interaction decides all its service times.
Without one, the server's seed and the number of the interaction decide.

With 64 threads up to 64 customers are inside at a time. With one thread the server is like the one
of the study: one request at a time, whatever the network would allow.

Server-Timing has for each station the time in service (`cpu`, `disk`, `delay`), the time in its
queue (`cpu_queue`, …) and the visits (`cpu_visits`, …); `late` is the delay that the machine added
at the end. `/told` lists the same values (seconds and counts) of at most `MOST_TOLD` interactions,
in the order in which they ended, so that a load generator need not spend time on reading headers.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from math import inf
from pathlib import Path
from random import Random

from loadtests.processes import Service
from loadtests.servers import answering
from loadtests.servers.answering import Answer, Answering, Application, number, values
from loadtests.servers.gunicorn import Gunicorn, gunicorn_server
from loadtests.servers.stations import Station, Step, Way, walk

CPU_S, DISK_S, DELAY_S = 0.0008, 0.046, 0.039
FILLINGS, FILLED_BLOCKS, LAST_BLOCKS = 27, 19, 28
GROUPS = (1, FILLED_BLOCKS)
INTERACTION, TOLD = "/interaction", "/told"
THREADS = 64
MOST_TOLD = 100_000


def running(
    log: Path,
    *,
    emulated_disk: float = 100,
    cv: float = 1.0,
    group: int = 1,
    threads: int = THREADS,
    seed: int = 1,
) -> AbstractContextManager[Service]:
    """Run the server with these settings of `application` on a free port, until the block ends.

    threads: customers inside at a time; 1 is one request at a time. Raises ValueError for wrong
    settings, ProgramFailed if the server does not start.
    """
    application(emulated_disk, cv, group, seed)  # raises ValueError for wrong settings
    made = f"loadtests.servers.network:application({emulated_disk!r}, {cv!r}, {group!r}, {seed!r})"
    how = Gunicorn("sync" if threads == 1 else "gthread", threads=threads)
    return gunicorn_server(made, how, log, answering.LIVE)


def application(
    emulated_disk: float = 100, cv: float = 1.0, group: int = 1, seed: int = 1
) -> Application:
    """The WSGI application. emulated_disk: K. cv: that of service times. group: 1, or 19 to join.

    Raises ValueError for wrong settings.
    """
    if not emulated_disk > 0:
        raise ValueError(f"emulated_disk {emulated_disk}: must be positive")
    if not 0 <= cv < inf:
        raise ValueError(f"cv {cv}: must be 0 or more")
    if group not in GROUPS:
        raise ValueError(f"group {group}: must be one of {', '.join(map(str, GROUPS))}")
    way = route(Station("cpu"), Station("disk"), Station("delay"), 1 / emulated_disk, group)
    ended: deque[Answer] = deque(maxlen=MOST_TOLD)
    routes = {INTERACTION: _interaction(way, cv, seed, ended), TOLD: _telling(ended)}
    return answering.application(routes, emulated_disk)


def route(cpu: Station, disk: Station, delay: Station, scale: float, group: int) -> list[Step]:
    """The route of one interaction. scale: factor for the study's mean service times."""
    looking = [_visits(cpu, CPU_S * scale, FILLED_BLOCKS, group)] * (FILLINGS - 1)
    looking.append(_visits(cpu, CPU_S * scale, LAST_BLOCKS, group))
    read = Step(disk, DISK_S * scale * group), Step(delay, DELAY_S * scale * group)
    filling = [*read] * (FILLED_BLOCKS // group)
    first = Step(cpu, CPU_S * scale)
    return [first, *(step for looks in looking for step in (*filling, *looks))]


def _visits(station: Station, mean_s: float, times: int, group: int) -> list[Step]:
    """`times` visits in a row, or with `group` a single visit as long as all of them."""
    return [Step(station, mean_s)] * times if group == 1 else [Step(station, mean_s * times)]


def _interaction(way: Sequence[Step], cv: float, seed: int, ended: deque[Answer]) -> Answering:
    numbers = count()

    def interact(parameters: Mapping[str, str]) -> Answer:
        if parameters:
            (text,) = values(parameters, "seed")
            name = f"seed {number('seed', text)}"
        else:
            name = f"{seed}/{next(numbers)}"
        went = walk(way, cv, Random(name))  # noqa: S311  a load, no secrets
        answer = _told(went)
        ended.append(answer)
        return answer

    return interact


def _telling(ended: deque[Answer]) -> Answering:
    def tell(parameters: Mapping[str, str]) -> Answer:
        values(parameters)
        told = [ended.popleft() for _ in range(len(ended))]
        return Answer([{**one.parts_s, **one.counts} for one in told])

    return tell


def _told(went: Way) -> Answer:
    service_s = {name: share.service_s for name, share in went.by_station.items()}
    queue_s = {f"{name}_queue": share.queue_s for name, share in went.by_station.items()}
    visits = {f"{name}_visits": share.visits for name, share in went.by_station.items()}
    return Answer({"service_s": service_s}, {**service_s, **queue_s, "late": went.late_s}, visits)
