"""Exact mean value analysis of a closed network with one class of customers.

A customer that arrives at a station finds on average as many customers there as if it were not in
the system itself (arrival theorem), so the means of N customers follow from those of N − 1. This is
exact for networks with a product form: exponential service in order of arrival, or any service with
processor sharing or at a delay. With less variable service in order of arrival, networks do better.

Symbols: D demand, m servers, Q mean customers at a station, p(j) the probability of j there.

    R(N) = D                                            delay
    R(N) = D/m·(1 + Q(N−1) + Σ_{j<m−1} (m−1−j)·p(j|N−1))   m servers; the sum is empty for m = 1
    X(N) = N/(Z + Σ R(N)),  Q(N) = X(N)·R(N),  p(j|N) = X(N)·D/j·p(j−1|N−1) for 0 < j < m

Textbooks take p(0|N) = 1 − (X·D + Σ (m−j)·p(j))/m. Once the station is saturated, this is a
difference of nearly equal numbers, its error grows with every N, and results become negative. Here
p(0|N) = p(0|N−1)·X(N)/X'(N), where X' is the throughput of the network without this station, so
nothing cancels. The price is that each station with several servers doubles the number of networks
to solve.

Sources: M. Reiser and S. S. Lavenberg, Mean-value analysis of closed multichain queuing networks,
Journal of the ACM 27 (1980); M. Reiser, Mean-value analysis and convolution method for
queue-dependent servers in closed queueing networks, Performance Evaluation 1 (1981), for p(0).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadtests.models.domain import count, not_negative
from loadtests.models.laws import Station, total_demand_s

MOST_MULTI_SERVERS = 6  # stations with several servers in one network: 2⁶ = 64 networks are solved


@dataclass(frozen=True, slots=True)
class AtStation:
    """The means of a station.

    residence_time_s: R, waiting and service of all visits of one round. customers: Q = X·R.
    utilisation: X·D/m, of each server; for a delay X·D, the mean number in service.
    """

    name: str
    residence_time_s: float
    customers: float
    utilisation: float


@dataclass(frozen=True, slots=True)
class Solution:
    """The means of a closed network with `customers` customers.

    throughput_per_s: X, rounds per second. response_time_s: R, the time at all stations in one
    round, without think time. thinking: X·Z, the mean number of customers who think.
    """

    customers: int
    throughput_per_s: float
    response_time_s: float
    thinking: float
    stations: tuple[AtStation, ...]

    def at(self, name: str) -> AtStation:
        """The station called `name`. Raises KeyError if there is none."""
        return {station.name: station for station in self.stations}[name]


def solve(
    stations: Sequence[Station], most_customers: int, think_time_s: float = 0.0
) -> tuple[Solution, ...]:
    """The solutions for 1, 2 … `most_customers` customers who think for `think_time_s` (Z ≥ 0)."""
    count("most_customers", most_customers)
    not_negative("think_time_s", think_time_s)
    names = [station.name for station in stations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two stations are called {twice[0]!r}")
    multi, most = sum(station.is_multi for station in stations), MOST_MULTI_SERVERS
    if multi > most:
        raise ValueError(f"{multi} stations have several servers; at most {most} can be solved")
    if total_demand_s(stations) + think_time_s == 0:
        raise ValueError("a round takes no time: all demands and the think time are 0")
    return tuple(_solved(stations, most_customers, think_time_s, {}))


_Throughputs = dict[frozenset[str], list[float]]  # of networks, by the names of their stations


def _solved(
    stations: Sequence[Station], most_customers: int, think_time_s: float, known: _Throughputs
) -> Iterator[Solution]:
    """The solutions, each computed from the queues and probabilities of the one before it.

    known: throughputs of the networks without some stations, as far as these are solved.
    """
    without = {}
    for station in (station for station in stations if station.is_multi):
        rest = [other for other in stations if other is not station]
        names = frozenset(other.name for other in rest)
        if total_demand_s(rest) + think_time_s == 0:
            known[names] = [math.inf] * most_customers
        elif names not in known:
            solved = _solved(rest, most_customers, think_time_s, known)
            known[names] = [one.throughput_per_s for one in solved]
        without[station.name] = known[names]
    queues = [0.0] * len(stations)
    idle = [[1.0] for _ in stations]  # p(0), p(1) … below m
    for n in range(1, most_customers + 1):
        stays_s = list(map(_residence_time_s, stations, queues, idle))
        x = n / (think_time_s + math.fsum(stays_s))
        queues = [x * stay_s for stay_s in stays_s]
        idle = [
            _idle(station, before, x, without[station.name][n - 1]) if station.is_multi else before
            for station, before in zip(stations, idle, strict=True)
        ]
        at = tuple(
            AtStation(s.name, stay_s, x * stay_s, x * s.demand_s / (s.servers or 1))
            for s, stay_s in zip(stations, stays_s, strict=True)
        )
        yield Solution(n, x, math.fsum(stays_s), x * think_time_s, at)


def _residence_time_s(station: Station, queue: float, idle: list[float]) -> float:
    """R(N) of a station that had `queue` customers and the probabilities `idle` at N − 1."""
    if station.servers is None:
        return station.demand_s
    last = station.servers - 1
    spare = math.fsum((last - j) * p for j, p in enumerate(idle[:last]))
    return station.demand_s / station.servers * (1 + queue + spare)


def _idle(station: Station, before: list[float], x: float, x_without: float) -> list[float]:
    """p(j|N) for all j below m and up to N. before: the same at N − 1."""
    busy = [x * station.demand_s / j * p for j, p in enumerate(before, start=1)]
    return [before[0] * x / x_without, *busy][: station.servers]
