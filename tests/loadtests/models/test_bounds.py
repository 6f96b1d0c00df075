"""Asymptotic and balanced-job bounds, against the study (`test_mva` holds MVA against them)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import bounds
from loadtests.models.laws import DELAY, Station, service_demand_s
from loadtests.models.mva import solve

from .networks import networks
from .study import STUDY, THINK_TIME_S, network, same


@pytest.mark.parametrize("row", STUDY["mva"], ids=lambda row: row["customers"])
def test_the_studys_asymptotes_to_nine_digits(row: dict[str, Any]) -> None:
    limits = bounds.asymptotic(network(), row["customers"], THINK_TIME_S)
    assert same(limits.throughput_high_per_s, row["throughput_bound_per_s"])
    assert same(limits.response_low_s, row["response_bound_s"])


def test_the_studys_optimal_population() -> None:
    expected = STUDY["network"]
    value = bounds.maximum_throughput_per_s(network())
    assert same(value, expected["maximum_throughput_per_s"])
    value = bounds.optimal_population(network(), THINK_TIME_S)
    assert same(value, expected["optimal_population"])


def test_the_studys_server_as_it_ran_one_request_at_a_time() -> None:
    expected = STUDY["network"]["one_thread"]
    whole = [Station("server", STUDY["network"]["total_demand_s"])]
    assert same(bounds.maximum_throughput_per_s(whole), expected["maximum_throughput_per_s"])
    value = bounds.optimal_population(whole, THINK_TIME_S)
    assert same(value, expected["optimal_population"])


@given(networks(), st.integers(1, 1000))
def test_the_asymptotes_cross_at_the_optimal_population(
    case: tuple[list[Station], float], customers: int
) -> None:
    stations, think_s = case
    optimal = bounds.optimal_population(stations, think_s)
    most = bounds.maximum_throughput_per_s(stations)
    most_per_s = bounds.asymptotic(stations, customers, think_s).throughput_high_per_s
    expected = most if customers >= optimal else most * customers / optimal
    assert same(most_per_s, expected)


@given(networks(only_single=True))
def test_one_customer_and_very_many_meet_the_bounds(case: tuple[list[Station], float]) -> None:
    stations, think_s = case
    alone = solve(stations, 1, think_s)[0]
    for kind in (bounds.asymptotic, bounds.balanced_job):
        assert same(kind(stations, 1, think_s).throughput_high_per_s, alone.throughput_per_s)
        assert same(kind(stations, 1, think_s).throughput_low_per_s, alone.throughput_per_s)
        assert same(kind(stations, 1, think_s).response_low_s, alone.response_time_s)
    crowd = bounds.balanced_job(stations, 10**9, think_s)
    assert crowd.throughput_low_per_s == pytest.approx(crowd.throughput_high_per_s, rel=1e-6)


@given(st.integers(1, 5), st.floats(0.01, 10), st.integers(1, 20))
def test_a_balanced_network_is_its_own_bound(size: int, demand_s: float, customers: int) -> None:
    stations = [Station(str(at), demand_s) for at in range(size)]
    solution, limits = solve(stations, customers)[-1], bounds.balanced_job(stations, customers)
    assert same(solution.throughput_per_s, limits.throughput_high_per_s)
    assert same(solution.throughput_per_s, limits.throughput_low_per_s)
    assert same(solution.response_time_s, limits.response_low_s)


def test_who_thinks_waits_less_in_a_balanced_network() -> None:
    """The terms of Lazowska and others, Quantitative System Performance, section 5.4, by hand."""
    limits = bounds.balanced_job([Station("cpu", 1.0), Station("disk", 2.0)], 2, 3.0)
    assert same(limits.response_high_s, 3 + 1 * 2 / (1 + 3 / (2 * 3)))
    assert same(limits.response_low_s, 3 + 1 * 1.5 / (1 + 3 / 3))


def test_several_servers_raise_the_asymptote() -> None:
    limits = bounds.asymptotic([Station("workers", 6.0, 3), Station("wait", 1.0, DELAY)], 10)
    assert limits.throughput_high_per_s == 0.5
    assert limits.response_low_s == 20
    assert limits.response_high_s == 61


@pytest.mark.parametrize(
    ("stations", "message"),
    [
        ([], "nothing limits the throughput"),
        ([Station("wait", 1.0, DELAY)], "nothing limits the throughput"),
        ([Station("cpu", 0.0)], "nothing limits the throughput"),
        ([Station("workers", 1.0, 2)], "station 'workers' has 2 servers"),
    ],
)
def test_balanced_job_bounds_refuse_what_they_do_not_know(
    stations: list[Station], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        bounds.balanced_job(stations, 2)


def test_a_demand_is_of_all_visits_and_none_is_below_0() -> None:
    assert service_demand_s(4, 0.5) == 2
    for visits, time_s, named in ((-1, 1, "visit_ratio"), (1, -1, "service_time_s")):
        with pytest.raises(ValueError, match=named):
            service_demand_s(visits, time_s)
