"""Exact MVA, against the study's network and its limits; `test_networks` tests its solver."""

from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import bounds
from loadtests.models.laws import Station
from loadtests.models.mva import Solution, solve

from .networks import networks
from .study import STUDY, THINK_TIME_S, network, same

Network = tuple[list[Station], float]


@pytest.mark.parametrize("row", STUDY["mva"], ids=lambda row: row["customers"])
def test_the_studys_network_to_nine_digits(row: dict[str, Any]) -> None:
    solution = solve(network(), 30, THINK_TIME_S)[row["customers"] - 1]
    assert solution.customers == row["customers"]
    assert same(solution.throughput_per_s, row["throughput_per_s"])
    assert same(solution.response_time_s, row["response_time_s"])
    for station, busy, queue in zip(
        solution.stations, row["utilisations"], row["queue_lengths"], strict=True
    ):
        assert same(station.utilisation, busy)
        assert same(station.customers, queue)


@given(networks(), st.integers(1, 25))
def test_the_laws_hold_at_every_population(network: Network, most: int) -> None:
    stations, think_s = network
    before = 0.0
    for n, solution in enumerate(solve(stations, most, think_s), start=1):
        x = solution.throughput_per_s
        assert solution.customers == n
        assert isclose(x * (solution.response_time_s + think_s), n, rel_tol=1e-9)
        present = sum(station.customers for station in solution.stations)
        assert isclose(present + x * think_s, n, rel_tol=1e-9)
        assert x >= before * (1 - 1e-12)
        _check_bounds(solution, bounds.asymptotic(stations, n, think_s))
        for station, given_station in zip(solution.stations, stations, strict=True):
            assert station.residence_time_s >= given_station.demand_s * (1 - 1e-9)
            assert given_station.is_delay or station.utilisation <= 1 + 1e-9
        before = x


@given(networks(only_single=True), st.integers(1, 25))
def test_balanced_job_bounds_hold_and_are_tighter(network: Network, customers: int) -> None:
    stations, think_s = network
    solution = solve(stations, customers, think_s)[-1]
    balanced = bounds.balanced_job(stations, customers, think_s)
    wide = bounds.asymptotic(stations, customers, think_s)
    _check_bounds(solution, balanced)
    assert wide.throughput_low_per_s <= balanced.throughput_low_per_s * (1 + 1e-9)
    assert balanced.throughput_high_per_s <= wide.throughput_high_per_s * (1 + 1e-9)


def _check_bounds(solution: Solution, limits: bounds.Bounds) -> None:
    room = 1 + 1e-9
    assert limits.throughput_low_per_s <= solution.throughput_per_s * room
    assert solution.throughput_per_s <= limits.throughput_high_per_s * room
    assert limits.response_low_s <= solution.response_time_s * room
    assert solution.response_time_s <= limits.response_high_s * room


@pytest.mark.parametrize(
    ("stations", "customers", "think_s", "message"),
    [
        ([Station("a", 1.0)], 0, 0.0, "most_customers must be a whole number of at least 1, is 0"),
        ([Station("a", 1.0)], 1, -1.0, "think_time_s must be 0 or a positive number, is -1.0"),
        ([Station("a", 1.0), Station("a", 2.0)], 1, 0.0, "two stations are called 'a'"),
    ],
)
def test_a_network_outside_the_domain_is_refused(
    stations: list[Station], customers: int, think_s: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        solve(stations, customers, think_s)


def test_a_station_outside_the_domain_is_refused() -> None:
    with pytest.raises(ValueError, match="demand_s of station 'a' must be 0 or a positive"):
        Station("a", -1.0)
    with pytest.raises(ValueError, match="servers of station 'a' must be a whole number"):
        Station("a", 1.0, 0)
    with pytest.raises(KeyError):
        solve([Station("a", 1.0)], 1)[0].at("b")
