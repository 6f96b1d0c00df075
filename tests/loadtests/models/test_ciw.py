"""The models against Ciw, a simulator that others wrote: replays to rounding, means by interval.

Seeded, so that a run repeats. The intervals are of ten independent simulations at 99.9 %, and each
must be narrow enough to tell something.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf
from random import Random
from statistics import fmean
from typing import Any

import ciw  # type: ignore[import-untyped]
import pytest

from loadtests.models import replay
from loadtests.models.estimates import confidence_interval, warm_up_of
from loadtests.models.laws import DELAY, Station
from loadtests.models.mva import solve
from loadtests.models.open_queue import mgm, shared

pytestmark = pytest.mark.slow

CONFIDENCE = 0.999
SIMULATIONS = 10
CV = 0.3
GAMMA = ciw.dists.Gamma(CV**-2, CV**2)
EXPONENTIAL = ciw.dists.Exponential(1.0)


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


@pytest.mark.parametrize(
    ("services", "servers", "is_shared", "expected_s"),
    [
        (GAMMA, 1, False, mgm(0.6, 1.0, CV).response_time_s),
        (GAMMA, 1, True, shared(0.6, 1.0).response_time_s),
        (EXPONENTIAL, 3, False, mgm(1.8, 1.0, 1.0, 3).response_time_s),
    ],
)
def test_the_formulas_lie_in_the_interval_of_the_simulator(
    services: Any, servers: int, is_shared: bool, expected_s: float
) -> None:
    arrivals = ciw.dists.Exponential(0.6 * servers)
    runs = [
        responses(arrivals, services, servers, 2000, is_shared=is_shared, seed=seed)
        for seed in range(SIMULATIONS)
    ]
    interval = confidence_interval([fmean(run[warm_up_of(len(run)) :]) for run in runs], CONFIDENCE)
    assert interval.covers(expected_s)
    assert interval.relative_half_width < 0.15


@pytest.mark.parametrize(
    ("stations", "customers"),
    [
        ([Station("cpu", 0.4), Station("disk", 2.4), Station("log", 2.0)], 3),
        ([Station("workers", 3.0, 3), Station("disk", 0.9), Station("net", 1.0, DELAY)], 6),
    ],
)
def test_mean_value_analysis_lies_in_the_interval_of_the_simulator(
    stations: Sequence[Station], customers: int
) -> None:
    expected = solve(stations, customers, think_time_s=1.0)[-1]
    interval = confidence_interval(
        [throughput(stations, customers, seed) for seed in range(SIMULATIONS)], CONFIDENCE
    )
    assert interval.covers(expected.throughput_per_s)
    assert interval.relative_half_width < 0.06


def throughput(stations: Sequence[Station], customers: int, seed: int) -> float:
    """Rounds a second of customers who think for 1 s, all put in at once and never let out."""
    size = len(stations) + 1
    others = [None] * len(stations)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([1e-9, inf]), *others],
        batching_distributions=[ciw.dists.Deterministic(customers)]
        + [ciw.dists.Deterministic(1) for _ in stations],
        service_distributions=[EXPONENTIAL]
        + [ciw.dists.Exponential(1 / station.demand_s) for station in stations],
        number_of_servers=[inf, *(station.servers or inf for station in stations)],
        routing=[[float(to == (at + 1) % size) for to in range(size)] for at in range(size)],
    )
    ciw.seed(seed)
    warm_up_s, end_s = 50.0, 1250.0
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(end_s)
    ends_s = [record.exit_date for record in simulation.get_all_records() if record.node == 1]
    return sum(1 for at_s in ends_s if warm_up_s <= at_s < end_s) / (end_s - warm_up_s)
