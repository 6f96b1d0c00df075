"""Servers with a queue each: examples, bounds, and Ciw, a simulator that others wrote."""

from itertools import accumulate
from math import inf
from random import Random
from statistics import fmean
from typing import Any

import ciw  # type: ignore[import-untyped]
import pytest

from loadtests.models.replay import fcfs, multi_server, shortest_queue


def drawn(utilisation: float, servers: int, customers: int) -> tuple[list[float], list[float]]:
    """Times between arrivals and service times, both exponential."""
    random = Random(1)
    gaps_s = [random.expovariate(utilisation * servers) for _ in range(customers)]
    return gaps_s, [random.expovariate(1) for _ in gaps_s]


def test_a_customer_waits_for_its_own_server_although_another_is_idle() -> None:
    arrivals_s, services_s = [0.0, 0.0, 0.5], [4.0, 1.0, 1.0]
    assert shortest_queue(arrivals_s, services_s, 2) == [4.0, 1.0, 4.5]
    assert multi_server(arrivals_s, services_s, 2) == [4.0, 1.0, 1.5]


def test_who_leaves_just_now_is_not_counted() -> None:
    assert shortest_queue([0.0, 1.0, 1.0], [1.0, 5.0, 1.0], 2) == [1.0, 5.0, 1.0]


def test_one_server_has_one_queue() -> None:
    gaps_s, services_s = drawn(0.8, 1, 500)
    arrivals_s = list(accumulate(gaps_s))
    assert shortest_queue(arrivals_s, services_s, 1) == fcfs(arrivals_s, services_s)


@pytest.mark.parametrize(
    ("arrivals_s", "services_s", "servers", "named"),
    [
        ([0.0, 1.0], [1.0], 2, "1"),
        ([1.0, 0.0], [1.0, 1.0], 2, "order"),
        ([0.0], [-1.0], 2, "services_s"),
        ([0.0], [1.0], 0, "servers"),
    ],
)
def test_what_is_no_recording_is_refused(
    arrivals_s: list[float], services_s: list[float], servers: int, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        shortest_queue(arrivals_s, services_s, servers)


def test_the_mean_is_between_those_of_a_common_queue_and_of_separate_ones() -> None:
    gaps_s, services_s = drawn(0.8, 2, 20_000)
    arrivals_s = list(accumulate(gaps_s))
    common, shortest = (
        fmean(of(arrivals_s, services_s, 2)) for of in (multi_server, shortest_queue)
    )
    assert 1.05 * common < shortest < 0.8 / (1 - 0.8) + 1  # M/M/1 at each server


class Fewest(ciw.routing.JoinShortestQueue):  # type: ignore[misc]
    """Counts who is served, too, and not only who waits."""

    def get_queue_size(self, node_index: int) -> int:
        return int(self.simulation.nodes[node_index].number_of_individuals)


@pytest.mark.parametrize("servers", [2, 3])
def test_each_customer_takes_as_long_as_in_the_simulator(servers: int) -> None:
    """Each customer passes a node that takes no time, from which it is sent to a server."""
    gaps_s, services_s = drawn(0.9, servers, 400)
    nowhere: list[Any] = [None] * servers
    service_s = dict(enumerate(services_s, start=1))  # by the number of a customer

    class OfCustomer(ciw.dists.Distribution):  # type: ignore[misc]
        def sample(self, t: Any = None, ind: Any = None) -> float:
            return service_s[ind.id_number]

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps_s, inf]), *nowhere],
        service_distributions=[ciw.dists.Deterministic(0.0)] + [OfCustomer()] * servers,
        number_of_servers=[inf] + [1] * servers,
        routing=ciw.routing.NetworkRouting(
            routers=[
                Fewest(destinations=list(range(2, servers + 2)), tie_break="order"),
                *[ciw.routing.Leave()] * servers,
            ]
        ),
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(len(gaps_s))
    records = [one for one in simulation.get_all_records() if one.node > 1]
    records.sort(key=lambda one: one.id_number)
    simulated_s = [float(one.exit_date - one.arrival_date) for one in records]
    arrivals_s = list(accumulate(gaps_s))
    assert shortest_queue(arrivals_s, services_s, servers) == pytest.approx(simulated_s, abs=1e-9)
