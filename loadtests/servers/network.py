"""The queueing network of report 000 as a server: what MVA is about, with known service times.

    GET /interaction[?seed=N]   one customer's way through the network, its think time left out
    GET /told                   what each interaction told that has ended since this was last asked

The way is the report's deterministic one. The CPU is visited first; then 26 times the cache is
filled by 19 blocks (each DISK, then DELAY) and the CPU looks at 19 blocks; the 27th time it is
filled, and the CPU looks at the last 28 blocks, 19 of which were in the other cache all along. That
makes 523, 513 and 513 visits, of 0.8, 46 and 39 ms on average, all divided by K: demands of 0.4184,
23.598 and 20.007 s at K = 1. With exponential times such a network has the product form of the
report's probabilistic one (same visits, same means at a station: Kelly 1975, BCMP 1975), so exact
MVA holds for it. With times that vary little it does not, and throughput comes near the asymptotes.

Each visit draws its own service time: gamma with `cv`, so 1 is exponential and 0 deterministic.
`group` = 19 makes one visit of 19 in a row (one DISK visit of 19 × 46 ms on average a filling, then
one DELAY visit): fewer waits for a slow machine and the same demands, but another network where
times are not exponential. The seed of an interaction decides all its service times; without one
interactions are numbered as they come, from the server's seed on.

With 64 threads up to 64 customers are inside at a time. With one thread the server is what the
study really ran: one request at a time, whatever the network would allow.

Server-Timing has for each station the time in service (`cpu`, `disk`, `delay`), in its queue
(`cpu_queue`, …) and the visits (`cpu_visits`, …); `late` is what the machine added at the end.
`/told` answers with a list of the same (seconds and counts), in the order in which they ended; of
the last `MOST_TOLD`. So a generator that looks at no headers need not be slowed down by reading
them.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from random import Random

from loadtests.processes import Service
from loadtests.servers import answering
from loadtests.servers.answering import Answer, Answering, number, values
from loadtests.servers.known import Application, gunicorn_server
from loadtests.servers.stations import Station, Step, Way, law_of, walk

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
    """The server on a free port, with these settings of `application`, until the end of the `with`
    block. threads: customers inside at a time; 1 is one request at a time.

    Raises ValueError for settings that cannot be, ProgramFailed if it does not come up.
    """
    application(emulated_disk, cv, group, seed)  # raises for what cannot be
    made = f"loadtests.servers.network:application({emulated_disk!r}, {cv!r}, {group!r}, {seed!r})"
    return gunicorn_server(made, answering.threads(threads), log, answering.LIVE)


def application(
    emulated_disk: float = 100, cv: float = 1.0, group: int = 1, seed: int = 1
) -> Application:
    """The server's application. emulated_disk: K. cv: of service times. group: visits made one.

    Raises ValueError for what cannot be.
    """
    if not emulated_disk > 0:
        raise ValueError(f"emulated_disk {emulated_disk}: must be positive")
    if group not in GROUPS:
        raise ValueError(f"group {group}: must be one of {', '.join(map(str, GROUPS))}")
    way = route(Station("cpu"), Station("disk"), Station("delay"), 1 / emulated_disk, group)
    ended: deque[Answer] = deque(maxlen=MOST_TOLD)
    routes = {INTERACTION: _interaction(way, cv, seed, ended), TOLD: _telling(ended)}
    return answering.application(routes, emulated_disk)


def route(cpu: Station, disk: Station, delay: Station, scale: float, group: int) -> list[Step]:
    """The way of one interaction. scale: of the study's mean service times."""
    looking = [_visits(cpu, CPU_S * scale, FILLED_BLOCKS, group)] * (FILLINGS - 1)
    looking.append(_visits(cpu, CPU_S * scale, LAST_BLOCKS, group))
    read = Step(disk, DISK_S * scale * group), Step(delay, DELAY_S * scale * group)
    filling = [*read] * (FILLED_BLOCKS // group)
    first = Step(cpu, CPU_S * scale)
    return [first, *(step for looks in looking for step in (*filling, *looks))]


def _visits(station: Station, mean_s: float, times: int, group: int) -> list[Step]:
    """`times` visits in a row, or one as long as all of them."""
    return [Step(station, mean_s)] * times if group == 1 else [Step(station, mean_s * times)]


def _interaction(way: Sequence[Step], cv: float, seed: int, ended: deque[Answer]) -> Answering:
    law, numbers = law_of(cv), count()

    def interact(parameters: Mapping[str, str]) -> Answer:
        if parameters:
            (text,) = values(parameters, "seed")
            name = f"seed {number('seed', text)}"
        else:
            name = f"{seed}/{next(numbers)}"
        went = walk(way, law, Random(name))  # noqa: S311  a load, no secrets
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
