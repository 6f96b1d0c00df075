"""Sends recorded arrivals and service times once more through a queue that starts empty.

Chance is the same for a real server and a modelled queue with the same arrivals and service times,
so their results differ by the server alone. Every function takes arrival times (s, in order; equal
ones are served in the order given) and service times (s), one for each arrival, and returns the
response times (s) in the same order. Functions raise ValueError for lists of unequal length,
arrivals out of order, a service time below 0, or less than one server.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush, heapreplace

from loadtests.models.domain import count, not_negative, recorded_times

Discipline = Callable[[Sequence[float], Sequence[float]], list[float]]
"""A function from arrival and service times to response times, such as `fcfs`."""


def _check(arrivals_s: Sequence[float], services_s: Sequence[float], servers: int = 1) -> None:
    recorded_times(arrivals_s, services_s)
    count("servers", servers)
    if services_s:
        not_negative("the least of services_s", min(services_s))


def fcfs(arrivals_s: Sequence[float], services_s: Sequence[float]) -> list[float]:
    """One server, first come, first served (D. V. Lindley's recursion, 1952)."""
    _check(arrivals_s, services_s)
    responses_s = []
    free_s = -math.inf
    for arrival_s, service_s in zip(arrivals_s, services_s, strict=True):
        begun_s = arrival_s if arrival_s > free_s else free_s  # noqa: FURB136  max() is slow
        free_s = begun_s + service_s
        responses_s.append(free_s - arrival_s)
    return responses_s


def multi_server(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int
) -> list[float]:
    """`servers` servers, one queue, first come, first served: the first free server takes the next.

    Source: J. Kiefer and J. Wolfowitz (1955). A heap has the times at which servers become free.
    """
    _check(arrivals_s, services_s, servers)
    responses_s = []
    free_s = [-math.inf] * servers
    heapify(free_s)
    for arrival_s, service_s in zip(arrivals_s, services_s, strict=True):
        departure_s = max(arrival_s, free_s[0]) + service_s
        heapreplace(free_s, departure_s)
        responses_s.append(departure_s - arrival_s)
    return responses_s


def with_servers(servers: int) -> Discipline:
    """`multi_server` as a discipline. Raises ValueError for less than one server."""
    return partial(multi_server, servers=count("servers", servers))


def processor_sharing(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int = 1
) -> list[float]:
    """All customers are served at once and share `servers` processors equally.

    With n customers each is served at the rate min(1, m/n). Virtual time is the service that a
    customer present since the start would have received: it grows at that rate, and a customer
    leaves when it has grown by the customer's own service time. So departures are kept in a heap of
    virtual times.
    """
    _check(arrivals_s, services_s, servers)
    room = _Room(servers)
    responses_s = [0.0] * len(arrivals_s)
    for customer, (arrival_s, service_s) in enumerate(zip(arrivals_s, services_s, strict=True)):
        for departed, time_s in room.departures_until(arrival_s):
            responses_s[departed] = time_s - arrivals_s[departed]
        room.enter(customer, arrival_s, service_s)
    for departed, time_s in room.departures_until(math.inf):
        responses_s[departed] = time_s - arrivals_s[departed]
    return responses_s


class _Room:
    """The customers who share the processors, and the virtual times at which they leave."""

    def __init__(self, servers: int) -> None:
        self._servers = servers
        self._now_s = 0.0
        self._virtual_s = 0.0
        self._leave: list[tuple[float, int]] = []  # virtual time of departure, customer

    def enter(self, customer: int, now_s: float, service_s: float) -> None:
        """Add a customer at `now_s`. All customers who leave until then must have been removed."""
        if self._leave:
            self._virtual_s += (now_s - self._now_s) * self._rate()
        else:
            self._virtual_s = 0.0
        self._now_s = now_s
        heappush(self._leave, (self._virtual_s + service_s, customer))

    def departures_until(self, until_s: float) -> list[tuple[int, float]]:
        """Remove the customers who leave until `until_s`. Returns them with departure times."""
        departed = []
        while self._leave:
            virtual_s, customer = self._leave[0]
            wait_s = max(0.0, virtual_s - self._virtual_s) / self._rate()
            if self._now_s + wait_s > until_s:
                break
            heappop(self._leave)
            self._now_s += wait_s
            self._virtual_s = virtual_s
            departed.append((customer, self._now_s))
        return departed

    def _rate(self) -> float:
        return min(1.0, self._servers / len(self._leave))


class ShortestQueue:
    """The queues of `servers` servers, of which each serves first who came first.

    Raises ValueError for less than one server.
    """

    def __init__(self, servers: int) -> None:
        count("servers", servers)
        self._departures_s = [deque[float]() for _ in range(servers)]

    def departure_s(self, arrival_s: float, service_s: float) -> float:
        """When a customer leaves who arrives now, not before any other who has arrived."""
        joined = self._departures_s[0]
        for queue in self._departures_s:
            while queue and queue[0] <= arrival_s:
                queue.popleft()
            if len(queue) < len(joined):
                joined = queue
        begun_s = joined[-1] if joined else arrival_s
        joined.append(begun_s + service_s)
        return joined[-1]


def shortest_queue(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int
) -> list[float]:
    """The response times (s) of these arrivals (s, in order) with these service times (s).

    Raises ValueError as the functions of `replay` do.
    """
    recorded_times(arrivals_s, services_s)
    not_negative("the least of services_s", min(services_s, default=0.0))
    queues = ShortestQueue(servers)
    both = zip(arrivals_s, services_s, strict=True)
    return [queues.departure_s(arrival_s, service_s) - arrival_s for arrival_s, service_s in both]
