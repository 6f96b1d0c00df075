"""Stations of a queueing network in real time: one server each, first come, first served.

A customer is a thread, and its service times are injected. So it is known as soon as a customer
arrives when its service will end: each customer keeps the time at which its last service ended, and
each station the time from which it is free; a service begins at the later of the two. The thread
sleeps until the end, in the queue and in service. The stations promise:
- Customers are served in the order in which they arrive.
- Times add up in spite of late timers: a late wake-up does not delay the end of any service.
- A customer goes on if less than `SHORTEST_SLEEP_S` is left of a service, so that services shorter
  than a sleep add up to one. At the end of the whole route it always sleeps until the end.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from threading import Lock
from time import monotonic

from loadtests.models.distributions import gamma_time_s
from loadtests.waits import sleep_until

SHORTEST_SLEEP_S = 0.0001


class Station:
    """One server with a queue. Attribute: `name`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = Lock()
        self._free_s = 0.0

    def serve(self, arrived_s: float, service_s: float) -> float:
        """Serve a customer who arrived at `arrived_s`. Returns the end (both on CLOCK_MONOTONIC).

        It returns at the end, or up to `SHORTEST_SLEEP_S` earlier.
        """
        with self._lock:
            end_s = max(arrived_s, self._free_s) + service_s
            self._free_s = end_s
        if end_s - monotonic() > SHORTEST_SLEEP_S:
            sleep_until(end_s)
        return end_s


@dataclass(frozen=True, slots=True)
class Step:
    """A visit to a station. mean_s: mean service time in seconds."""

    station: Station
    mean_s: float


@dataclass(slots=True)
class Share:
    """The share of a station in a customer's route: visits, seconds in service and in the queue."""

    visits: int = 0
    service_s: float = 0.0
    queue_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Way:
    """A customer's completed route. by_station: name -> share.

    late_s: seconds from the end of the last service to the real end; a machine is too busy if this
    is more than a moment.
    """

    by_station: Mapping[str, Share]
    late_s: float


def walk(route: Sequence[Step], cv: float, random: Random) -> Way:
    """Go along `route` as a customer, in this thread, until the last service has ended.

    cv: coefficient of variation of the service times, which are gamma distributed.
    """
    at_s = monotonic()
    shares = defaultdict[str, Share](Share)
    for step in route:
        service_s = gamma_time_s(step.mean_s, cv, random)
        end_s = step.station.serve(at_s, service_s)
        share = shares[step.station.name]
        share.visits += 1
        share.service_s += service_s
        share.queue_s += max(0.0, end_s - at_s - service_s)  # not the rounding of an empty queue
        at_s = end_s
    sleep_until(at_s)
    return Way(shares, monotonic() - at_s)
