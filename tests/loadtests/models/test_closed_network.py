"""The simulated closed network: against mean value analysis, the bounds, and Little's law."""

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.models import bounds, mva
from loadtests.models.closed_network import Round, Visit, simulated
from loadtests.models.laws import Station
from loadtests.models.random_times import with_mean_and_cv

WAY = (("cpu", 0.2), ("disk", 0.5), ("disk", 0.5), ("check", 0.4), ("cpu", 0.1))
STATIONS = [Station("cpu", 0.3), Station("disk", 1.0), Station("check", 0.4)]
THINK_S = 0.7
DEMAND_S = 1.7


def way(cv: float) -> list[Visit]:
    return [Visit(name, with_mean_and_cv(mean_s, cv)) for name, mean_s in WAY]


def throughput_per_s(rounds: list[Round], customers: int) -> float:
    """From the first half on, until the first customer has finished."""
    last = {one.customer: one.end_s for one in rounds}
    assert len(last) == customers
    end_s = min(last.values())
    start_s = rounds[len(rounds) // 4].end_s
    return sum(start_s < one.end_s <= end_s for one in rounds) / (end_s - start_s)


@pytest.mark.parametrize("customers", [1, 2, 5])
def test_exponential_stations_are_those_of_mean_value_analysis(customers: int) -> None:
    exact = mva.solve(STATIONS, customers, THINK_S)[-1]
    rounds = simulated(way(1), customers, THINK_S, 40_000 // customers, Random(1))
    assert throughput_per_s(rounds, customers) == pytest.approx(exact.throughput_per_s, rel=0.03)


def test_regular_stations_do_better_than_mean_value_analysis_and_not_than_the_bound() -> None:
    exact = mva.solve(STATIONS, 3, THINK_S)[-1].throughput_per_s
    found = throughput_per_s(simulated(way(0.1), 3, THINK_S, 2000, Random(1)), 3)
    bound = bounds.asymptotic(STATIONS, 3, THINK_S).throughput_high_per_s
    assert 1.1 * exact < found <= bound * 1.01


@pytest.mark.parametrize("customers", [1, 2, 5])
def test_one_at_a_time_is_one_station(customers: int) -> None:
    rounds = simulated(way(0), customers, THINK_S, 50, Random(1), one_at_a_time=True)
    bound = bounds.asymptotic([Station("all", DEMAND_S)], customers, THINK_S)
    expected = bound.throughput_high_per_s
    assert throughput_per_s(rounds, customers) == pytest.approx(expected, rel=0.05)
    assert all(not any(one.queue_s.values()) for one in rounds)
    between_s = sorted(one.end_s for one in rounds)
    assert all(b - a >= DEMAND_S - 1e-9 for a, b in itertools.pairwise(between_s))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 8), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_times_of_a_round_add_up(customers: int, rounds: int, cv: float, alone: bool) -> None:
    found = simulated(way(cv), customers, THINK_S, rounds, Random(2), one_at_a_time=alone)
    assert len(found) == customers * rounds
    for one in found:
        spent_s = one.door_s + sum(one.service_s.values()) + sum(one.queue_s.values())
        assert one.end_s - one.start_s == pytest.approx(spent_s)
        assert set(one.service_s) == {"cpu", "disk", "check"}
    by_customer = [[one for one in found if one.customer == c] for c in range(customers)]
    for own in by_customer:
        for before, after in itertools.pairwise(own):
            assert after.start_s == pytest.approx(before.end_s + THINK_S)


def test_the_same_seed_is_the_same_simulation() -> None:
    once, again = (simulated(way(1), 2, THINK_S, 5, Random(3)) for _ in range(2))
    assert once == again


@pytest.mark.parametrize(
    ("visits", "customers", "think_s", "rounds"),
    [(way(0), 0, 1, 1), (way(0), 1, -1, 1), (way(0), 1, 1, 0), ([], 1, 1, 1)],
)
def test_what_cannot_be_is_refused(
    visits: list[Visit], customers: int, think_s: float, rounds: int
) -> None:
    with pytest.raises(ValueError, match="must be"):
        simulated(visits, customers, think_s, rounds, Random(1))
