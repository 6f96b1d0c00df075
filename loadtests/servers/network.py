"""Serves as the queueing network of report 000 with known service times, to compare with MVA.

    GET /interaction   lets a customer go through the network, without think time: its times
    GET /told          the times of interactions that ended since the last request

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
network unless times are exponential. The seed and the number of an interaction decide its times.

With one thread the server is like the study's: one request at a time.

Times are in seconds: for each station that in service (`cpu`, `disk`, `delay`) and that in its
queue (`cpu_queue`, …); `late` is the delay that the machine added at the end. `/told` lists them of
at most `MOST_TOLD` interactions, in the order in which they ended, so that a load generator need
not spend time on reading answers.

A station is one server, first come, first served. A customer is a thread, and its service times are
injected, so it is known on arrival when its service will end: a service begins when the customer's
last one has ended and the station is free. The thread sleeps until the end, in the queue and in
service, so times add up in spite of late timers. A customer goes on if less than `SHORTEST_SLEEP_S`
is left of a service; at the end of the whole route it always sleeps.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock
from time import monotonic, sleep

from loadtests.models.random_times import Gamma
from loadtests.processes import Service
from loadtests.servers import timed_apps
from loadtests.servers.gunicorn import Gunicorn, gunicorn_server
from loadtests.servers.timed_apps import Answer, Application

SHORTEST_SLEEP_S = 0.0001


class Station:
    """Serves customers in order of arrival. Attribute: `name`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = Lock()
        self._free_s = 0.0

    def serve(self, arrived_s: float, service_s: float) -> float:
        """Serve a customer who arrived at `arrived_s`. Returns the end (both on CLOCK_MONOTONIC).

        It returns at the end, or up to `SHORTEST_SLEEP_S` earlier.
        """
        with self._lock:
            self._free_s = end_s = max(arrived_s, self._free_s) + service_s
        if (left_s := end_s - monotonic()) > SHORTEST_SLEEP_S:
            sleep(left_s)
        return end_s


@dataclass(frozen=True, slots=True)
class Step:
    """Describes a visit to a station. mean_s: mean service time in seconds."""

    station: Station
    mean_s: float


def walk(route: Sequence[Step], cv: float, random: Random) -> dict[str, float]:
    """Go along `route` as a customer, in this thread, until the last service has ended.

    cv: coefficient of variation of the service times, which are gamma distributed. Returns the
    times that are told; a machine is too busy if `late` is more than a moment.
    """
    at_s = monotonic()
    service_s, queue_s = defaultdict[str, float](float), defaultdict[str, float](float)
    for step in route:
        name, needs_s = step.station.name, Gamma(step.mean_s, cv).draw(random)
        end_s = step.station.serve(at_s, needs_s)
        service_s[name] += needs_s
        queue_s[f"{name}_queue"] += max(0.0, end_s - at_s - needs_s)  # not an empty one's rounding
        at_s = end_s
    sleep(max(0.0, at_s - monotonic()))
    return {**service_s, **queue_s, "late": monotonic() - at_s}


CPU_S, DISK_S, DELAY_S = 0.0008, 0.046, 0.039
FILLINGS, FILLED_BLOCKS, LAST_BLOCKS = 27, 19, 28
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

    threads: customers inside at a time. Raises ProgramFailed if it does not start.
    """
    made = f"loadtests.servers.network:application({emulated_disk!r}, {cv!r}, {group!r}, {seed!r})"
    how = Gunicorn("sync" if threads == 1 else "gthread", threads=threads)
    return gunicorn_server(made, how, log, timed_apps.LIVE)


def application(
    emulated_disk: float = 100, cv: float = 1.0, group: int = 1, seed: int = 1
) -> Application:
    """Return the WSGI application. emulated_disk: K. cv: of services. group: 1, or 19 to join."""
    steps = route(Station("cpu"), Station("disk"), Station("delay"), 1 / emulated_disk, group)
    ended: deque[dict[str, float]] = deque(maxlen=MOST_TOLD)
    numbers = count()

    def interact(_: Mapping[str, str]) -> Answer:
        random = Random(f"{seed}/{next(numbers)}")  # noqa: S311  a load, no secrets
        ended.append(times := walk(steps, cv, random))
        return Answer(times)

    def tell(_: Mapping[str, str]) -> Answer:
        return Answer([ended.popleft() for _ in range(len(ended))])

    return timed_apps.application({INTERACTION: interact, TOLD: tell})


def route(cpu: Station, disk: Station, delay: Station, scale: float, group: int) -> list[Step]:
    """Return the route of an interaction. scale: factor for the study's mean service times."""
    look_s = CPU_S * scale
    read = Step(disk, DISK_S * scale * group), Step(delay, DELAY_S * scale * group)
    steps = [Step(cpu, look_s)]
    for blocks in (*[FILLED_BLOCKS] * (FILLINGS - 1), LAST_BLOCKS):
        looks = [Step(cpu, look_s)] * blocks if group == 1 else [Step(cpu, look_s * blocks)]
        steps += [*[*read] * (FILLED_BLOCKS // group), *looks]
    return steps
