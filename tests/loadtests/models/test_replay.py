"""Replays, against plain simulations in exact fractions, the laws of each discipline, and Ciw."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from math import inf, isclose
from random import Random
from typing import Any

import ciw  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import replay

Recording = tuple[list[float], list[float]]


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Arrivals in order, some at the same time, and service times, some 0; all in quarters."""
    size = draw(st.integers(0, 25))
    quarters = st.integers(0, 12).map(lambda number: number / 4)
    gaps = draw(st.lists(quarters, min_size=size, max_size=size))
    return list(accumulate(gaps)), draw(st.lists(quarters, min_size=size, max_size=size))


servers = st.integers(1, 4)


def shared_exactly(
    arrivals_s: Sequence[float], services_s: Sequence[float], servers: int
) -> list[Fraction]:
    """Processor sharing from one event to the next, with the work left of each customer."""
    left: dict[int, Fraction] = {}
    departures: dict[int, Fraction] = {}
    now = Fraction(0)

    def serve_until(end: Fraction | None) -> None:
        nonlocal now
        while left:
            rate = min(Fraction(1), Fraction(servers, len(left)))
            least = min(left.values())
            if end is not None and now + least / rate > end:
                break
            now += least / rate
            for customer in [c for c, work in left.items() if work == least]:
                departures[customer] = now
                del left[customer]
            for customer in left:
                left[customer] -= least
        if end is not None:
            for customer in left:
                left[customer] -= (end - now) * min(Fraction(1), Fraction(servers, len(left)))
            now = end

    for customer, arrival_s in enumerate(arrivals_s):
        serve_until(Fraction(arrival_s))
        left[customer] = Fraction(services_s[customer])
    serve_until(None)
    return [departures[c] - Fraction(a) for c, a in enumerate(arrivals_s)]


@given(recordings(), servers)
def test_processor_sharing_is_that_of_exact_fractions(run: Recording, m: int) -> None:
    shared, exact = replay.processor_sharing(*run, m), shared_exactly(*run, m)
    assert all(isclose(a, b, abs_tol=1e-9) for a, b in zip(shared, exact, strict=True))


@given(recordings())
def test_fcfs_serves_in_order_and_never_idles_with_work(run: Recording) -> None:
    arrivals, services = run
    departures = departures_of(arrivals, replay.fcfs(arrivals, services))
    assert departures == sorted(departures)
    for n, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        start = departures[n] - service
        assert start == max([arrival, *departures[n - 1 : n]])


@given(recordings(), servers)
def test_several_servers_start_in_order_each_when_one_is_free(run: Recording, m: int) -> None:
    arrivals, services = run
    departures = departures_of(arrivals, replay.multi_server(arrivals, services, m))
    starts = [d - s for d, s in zip(departures, services, strict=True)]
    assert starts == sorted(starts)
    for n, (arrival, start) in enumerate(zip(arrivals, starts, strict=True)):
        busy = sorted(departures[:n])[-m:]
        assert start == (max(arrival, busy[0]) if len(busy) == m else arrival)


@given(recordings(), servers)
def test_customers_who_ask_once_are_arrivals(run: Recording, m: int) -> None:
    arrivals, services = run
    once = replay.closed(arrivals, [[] for _ in arrivals], services, m)
    assert once == replay.multi_server(*run, m)


@given(recordings(), servers)
def test_a_customer_alone_waits_for_nobody(run: Recording, m: int) -> None:
    thinks, services = run
    assert replay.closed([1.0], [thinks[1:]], services, m) == services


@given(st.lists(st.integers(1, 12).map(float), min_size=6, max_size=24), st.integers(1, 4))
def test_customers_who_ask_again_at_once_wait_for_all_others(
    services: list[float], customers: int
) -> None:
    thinks = [[0.0] * len(services)] * customers
    taken = replay.closed([0.0] * customers, thinks, services, 1)
    assert taken == [sum(services[max(0, n - customers + 1) : n + 1]) for n in range(len(services))]


@given(recordings(), st.floats(0.5, 3))
def test_a_customer_who_thinks_is_not_there(run: Recording, think: float) -> None:
    """Two customers, of whom one asks once after an hour, do not meet."""
    _, services = run
    count = max(0, len(services) - 1)
    taken = replay.closed([0.0, 3600.0], [[think] * count, []], services, 1)
    assert taken == pytest.approx(services)


def test_no_customers_have_no_response_times() -> None:
    assert replay.fcfs([], []) == replay.processor_sharing([], []) == []


def departures_of(arrivals: Sequence[float], responses: Sequence[float]) -> list[float]:
    return [a + r for a, r in zip(arrivals, responses, strict=True)]


# --- Ciw, a simulator that others wrote ----------------------------------------------------------


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


@pytest.mark.slow
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
