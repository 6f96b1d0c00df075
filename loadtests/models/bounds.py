"""Computes bounds on throughput X and response time R of N customers in a closed network.

R counts the time at all stations, delays among them, but not the think time Z. Domain: N ≥ 1,
Z ≥ 0, at least one station with a queue and a demand. Sources: P. J. Denning and J. P. Buzen, ACM
Computing Surveys 10 (1978), for the asymptotic bounds; J. Zahorjan and others, Balanced job bound
analysis of queueing networks, Communications of the ACM 25 (1982), for the balanced ones; both in
E. D. Lazowska and others, Quantitative System Performance (1984), chapter 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.models.laws import Station, bottleneck, total_demand_s


@dataclass(frozen=True, slots=True)
class Bounds:
    """Holds the bounds of X (1/s) and R (s) of `customers` customers."""

    customers: int
    throughput_low_per_s: float
    throughput_high_per_s: float
    response_low_s: float
    response_high_s: float


def maximum_throughput_per_s(stations: Sequence[Station]) -> float:
    """Return 1/max(D/m), the throughput in 1/s that no number of customers can exceed."""
    return 1 / bottleneck(stations).least_gap_s


def optimal_population(stations: Sequence[Station], think_time_s: float = 0.0) -> float:
    """Return N_opt = (D + Z)/max(D/m), where the asymptotes cross: more customers must queue."""
    return (total_demand_s(stations) + think_time_s) / bottleneck(stations).least_gap_s


def asymptotic(stations: Sequence[Station], customers: int, think_time_s: float = 0.0) -> Bounds:
    """Return the bounds X ≤ min(N/(D + Z), 1/max(D/m)) and R ≥ max(D, N·max(D/m) − Z).

    These are the best case: nobody waits, or the bottleneck is always busy. The other bounds are
    the worst case: each customer waits for all others at every queue.
    """
    demand_s = total_demand_s(stations)
    gap_s = bottleneck(stations).least_gap_s
    queued_s = total_demand_s([station for station in stations if not station.is_delay])
    worst_s = demand_s + (customers - 1) * queued_s
    return _bounds(customers, demand_s, worst_s, gap_s, think_time_s)


def balanced_job(stations: Sequence[Station], customers: int, think_time_s: float = 0.0) -> Bounds:
    """Return balanced-job bounds, which are tighter than the asymptotic ones.

    They are the results of two networks: one whose demands are all average and one whose demands
    are all the largest. They hold where MVA does (exponential service in order of arrival, or
    processor sharing), and only for single servers and delays: several servers are a ValueError.
    Delays are treated as think time, and their demand is added to R in the end.
    """
    for station in (station for station in stations if station.is_multi):
        only = "balanced-job bounds hold for single servers and delays only, but station"
        raise ValueError(f"{only} {station.name!r} has {station.servers} servers")
    queues = [station for station in stations if not station.is_delay and station.demand_s > 0]
    largest_s = bottleneck(queues).demand_s
    queued_s = total_demand_s(queues)
    delay_s = total_demand_s([station for station in stations if station.is_delay])
    away_s = think_time_s + delay_s
    others = customers - 1
    best_s = queued_s + others * queued_s / len(queues) / (1 + away_s / queued_s)
    worst_s = queued_s + others * largest_s / (1 + away_s / (customers * queued_s))
    return _bounds(customers, best_s, worst_s, largest_s, away_s, delay_s)


def _bounds(
    customers: int, best_s: float, worst_s: float, gap_s: float, away_s: float, delay_s: float = 0.0
) -> Bounds:
    """Return the bounds from those of R without delays, and from the gap between customers."""
    return Bounds(
        customers,
        throughput_low_per_s=customers / (worst_s + away_s),
        throughput_high_per_s=min(customers / (best_s + away_s), 1 / gap_s),
        response_low_s=max(best_s, customers * gap_s - away_s) + delay_s,
        response_high_s=worst_s + delay_s,
    )
