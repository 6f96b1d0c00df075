"""Simulates customers who visit stations in a fixed order, round after round, and think in between.

Each station has one server and serves in order of arrival; each visit draws its own service time.
Mean value analysis is exact only for exponential times; this simulation is for times that vary
less. With `one_at_a_time`, as in a server with one thread, a customer enters only when the last one
has left. Customers then wait at the door, and never at a station.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count as numbers
from random import Random

from loadtests.models.domain import count, not_negative
from loadtests.models.random_times import ServiceTimes


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit to the station of this name."""

    station: str
    service: ServiceTimes


@dataclass(slots=True)
class Round:
    """A customer's round, from arrival to the end of its last visit, in seconds.

    service_s, queue_s: time in service and in the queue, by station. door_s: wait at the door.
    """

    customer: int
    start_s: float
    end_s: float = 0.0
    door_s: float = 0.0
    service_s: dict[str, float] = field(default_factory=dict)
    queue_s: dict[str, float] = field(default_factory=dict)

    def add(self, station: str, service_s: float, queue_s: float) -> None:
        """Add a visit."""
        self.service_s[station] = self.service_s.get(station, 0.0) + service_s
        self.queue_s[station] = self.queue_s.get(station, 0.0) + queue_s


def simulated(
    way: Sequence[Visit],
    customers: int,
    think_time_s: float,
    rounds: int,
    random: Random,
    *,
    one_at_a_time: bool = False,
) -> list[Round]:
    """`rounds` rounds of each of `customers` customers, in the order in which they end.

    All customers arrive at 0.

    Raises ValueError for less than one customer or round, a way without visits, and a negative
    think time.
    """
    count("customers", customers)
    count("rounds", rounds)
    count("the visits of the way", len(way))
    not_negative("think_time_s", think_time_s)
    going = _at_the_door if one_at_a_time else _inside
    return sorted(going(way, customers, think_time_s, rounds, random), key=lambda one: one.end_s)


def _inside(
    way: Sequence[Visit], customers: int, think_s: float, rounds: int, random: Random
) -> Iterator[Round]:
    """Serve arrivals at stations in order of time, and equal times in the order of their events.

    So the state of a station is just the time from which it is free.
    """
    order, left = numbers(), [rounds] * customers
    free_s = dict.fromkeys((visit.station for visit in way), 0.0)
    arrivals: list[tuple[float, int, int, Round]] = []
    for customer in range(customers):
        heappush(arrivals, (0.0, next(order), 0, Round(customer, 0.0)))
    while arrivals:
        now_s, _, at, of = heappop(arrivals)
        visit = way[at]
        service_s = visit.service.draw(random)
        begin_s = max(now_s, free_s[visit.station])
        free_s[visit.station] = end_s = begin_s + service_s
        of.add(visit.station, service_s, begin_s - now_s)
        if at + 1 < len(way):
            heappush(arrivals, (end_s, next(order), at + 1, of))
            continue
        of.end_s = end_s
        yield of
        left[of.customer] -= 1
        if left[of.customer]:
            again = Round(of.customer, end_s + think_s)
            heappush(arrivals, (again.start_s, next(order), 0, again))


def _at_the_door(
    way: Sequence[Visit], customers: int, think_s: float, rounds: int, random: Random
) -> Iterator[Round]:
    free_s, left = 0.0, [rounds] * customers
    arrivals = [(0.0, customer) for customer in range(customers)]
    while arrivals:
        now_s, customer = heappop(arrivals)
        begin_s = max(now_s, free_s)
        of = Round(customer, now_s, door_s=begin_s - now_s)
        for visit in way:
            of.add(visit.station, visit.service.draw(random), 0.0)
        free_s = of.end_s = begin_s + sum(of.service_s.values())
        yield of
        left[customer] -= 1
        if left[customer]:
            heappush(arrivals, (of.end_s + think_s, customer))
