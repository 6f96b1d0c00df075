"""Replays against Ciw, a simulator that others wrote; `test_networks` has the means against it."""

from collections.abc import Callable
from itertools import accumulate
from math import inf
from random import Random
from typing import Any

import ciw  # type: ignore[import-untyped]
import pytest

from loadtests.models import replay

pytestmark = pytest.mark.slow


def responses(
    arrivals: Any, services: Any, servers: int, customers: int, *, is_shared: bool, seed: int
) -> list[float]:
    """The response times of the first customers who arrived, in order of arrival."""
    shared = {"ps_thresholds": [servers]} if is_shared else {}
    network = ciw.create_network(
        arrival_distributions=[arrivals],
        service_distributions=[services],
        number_of_servers=[inf if is_shared else servers],
        **shared,
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network, node_class=ciw.PSNode if is_shared else None)
    simulation.simulate_until_max_customers(customers)
    records = sorted(simulation.get_all_records(), key=lambda record: record.id_number)
    return [float(record.exit_date - record.arrival_date) for record in records]


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize(
    ("discipline", "is_shared"), [(replay.multi_server, False), (replay.processor_sharing, True)]
)
def test_each_replayed_customer_takes_as_long_as_in_the_simulator(
    discipline: Callable[[list[float], list[float], int], list[float]],
    is_shared: bool,
    servers: int,
) -> None:
    rng = Random(1)
    gaps = [rng.expovariate(0.9 * servers) for _ in range(400)]
    services = [rng.expovariate(1) for _ in gaps]
    simulated = responses(
        ciw.dists.Sequential([*gaps, inf]),
        ciw.dists.Sequential(services),
        servers,
        len(gaps),
        is_shared=is_shared,
        seed=1,
    )
    assert discipline(list(accumulate(gaps)), services, servers) == pytest.approx(
        simulated, abs=1e-9
    )
