"""Simulation of customers who go round a fixed way through stations, and think between rounds.

Each station has one server and serves in order of arrival; service times are drawn visit by visit.
Mean value analysis is exact for exponential times alone: this is for times that vary less. With
`one_at_a_time` a customer is let in only when the one before has come out, as in a server with one
thread: then nobody waits at a station, but at the door.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count as numbers
from random import Random

from loadtests.models.distributions import ServiceTimes
from loadtests.models.domain import count, not_negative


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit to the station of this name."""

    station: str
    service: ServiceTimes


@dataclass(slots=True)
class Round:
    """A customer's way, from arrival to the end of its last visit; seconds.

    service_s, queue_s: by station. door_s: what it waited to be let in.
    """

    customer: int
    start_s: float
    end_s: float = 0.0
    door_s: float = 0.0
    service_s: dict[str, float] = field(default_factory=dict)
    queue_s: dict[str, float] = field(default_factory=dict)

    def add(self, station: str, service_s: float, queue_s: float) -> None:
        """One visit more."""
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
    """`rounds` rounds of each of `customers` customers, who all arrive at 0, as they end.

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
    """Arrivals at stations are served in the order of time; of equal ones, the first to be known.

    A station is then as good as the time from which it is free.
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
