"""Stations of a queueing network in real time: one server each, first come first served.

A customer is a thread. It waits at a station until all who came before it have been served, then
holds the station for its service time, which is injected. What holds:

- Order is that of arrival at the station's lock, which is handed from customer to customer.
- Times add up whatever the system's timers do. A customer carries the time until which it has been
  served, and a station that from which it is free; a service begins at the later of the two and
  ends so much later, and the thread sleeps until then. Being woken late delays nobody's end.
- A customer goes on up to `SHORTEST_SLEEP_S` before its end: services shorter than a sleep can be
  are added up until they are worth one. The end of the whole way
  is slept to in any case.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from threading import Lock
from time import monotonic

from loadtests.waits import sleep_until

SHORTEST_SLEEP_S = 0.0001

Law = Callable[[float, Random], float]  # mean in seconds -> a service time in seconds


def law_of(cv: float) -> Law:
    """How service times are drawn: gamma with this coefficient of variation.

    0 is deterministic, 1 exponential. Raises ValueError for a negative one.
    """
    if not 0 <= cv < float("inf"):
        raise ValueError(f"cv {cv}: must be 0 or more")
    if cv == 0:
        return lambda mean_s, random: mean_s
    if cv == 1:
        return lambda mean_s, random: random.expovariate(1 / mean_s)
    shape = 1 / cv**2
    return lambda mean_s, random: random.gammavariate(shape, mean_s / shape)


class FairLock:
    """A lock that is handed to those who wait in the order in which they came."""

    def __init__(self) -> None:
        self._inside = Lock()
        self._is_held = False
        self._waiting: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._inside:
            if not self._is_held:
                self._is_held = True
                return
            gate = Lock()
            gate.acquire()
            self._waiting.append(gate)
        gate.acquire()  # until whoever is before us lets us in

    def __exit__(self, *raised: object) -> None:
        with self._inside:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False


class Station:
    """One server with a queue. Attribute: `name`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = FairLock()
        self._free_s = 0.0

    def serve(self, arrived_s: float, service_s: float) -> float:
        """Serve a customer who came at `arrived_s`; when that ends (both of `time.monotonic`).

        Returns at that time, or up to `SHORTEST_SLEEP_S` earlier.
        """
        with self._lock:
            end_s = max(arrived_s, self._free_s) + service_s
            self._free_s = end_s
            if end_s - monotonic() > SHORTEST_SLEEP_S:
                sleep_until(end_s)
        return end_s


@dataclass(frozen=True, slots=True)
class Step:
    """A visit to a station. mean_s: of its service time, seconds."""

    station: Station
    mean_s: float


@dataclass(slots=True)
class Share:
    """What of a customer's way was at one station: visits, seconds in service and in the queue."""

    visits: int = 0
    service_s: float = 0.0
    queue_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """A customer's way. by_station: name -> share. late_s: how much later than its last service
    ended, in seconds, it was really over; more than a moment tells of a machine that was too busy.
    """

    by_station: Mapping[str, Share]
    late_s: float


def walk(route: Sequence[Step], law: Law, random: Random) -> Way:
    """Send one customer, this thread, along `route`; return when its last service has ended."""
    at_s = monotonic()
    shares = defaultdict[str, Share](Share)
    for step in route:
        service_s = law(step.mean_s, random)
        end_s = step.station.serve(at_s, service_s)
        share = shares[step.station.name]
        share.visits += 1
        share.service_s += service_s
        share.queue_s += max(0.0, end_s - at_s - service_s)  # not the rounding of an empty queue
        at_s = end_s
    sleep_until(at_s)
    return Way(shares, monotonic() - at_s)
