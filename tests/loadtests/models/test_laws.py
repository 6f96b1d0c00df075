"""The operational laws, against Lazowska's book and the study on travel reservations."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import laws

from .study import STUDY, same

POSITIVE = st.floats(1e-3, 1e6)


@pytest.mark.parametrize("row", STUDY["transactions"], ids=lambda row: row["name"])
def test_a_transaction_is_the_sum_of_its_visits(row: dict[str, float]) -> None:
    steps_ms = [row["start_ms"], row["query_ms"], row["reserve_ms"], row["commit_ms"]]
    found_s = laws.general_response_time_s([1, 4, 3, 1], [ms / 1000 for ms in steps_ms])
    assert same(1000 * found_s, row["sum_ms"])


def test_a_disk_of_40_requests_a_second_and_22_5_ms_each_is_busy_for_90_percent() -> None:
    assert laws.utilisation(40, 0.0225) == pytest.approx(0.9)
    assert laws.customers(40, 0.1) == pytest.approx(4)
    assert laws.response_time_s(4, 40) == pytest.approx(0.1)
    assert laws.throughput_per_s(4, 0.1) == pytest.approx(40)


def test_25_users_who_think_18_s_at_a_throughput_of_0_45_wait_37_6_s() -> None:
    assert laws.interactive_response_time_s(25, 0.45, 18) == pytest.approx(37.5556, abs=1e-4)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_both_ways_to_a_demand_agree(x: float, visits: float, s: float) -> None:
    at_station = laws.station_throughput_per_s(x, visits)
    assert same(
        laws.measured_demand_s(laws.utilisation(at_station, s), x), laws.service_demand_s(visits, s)
    )


@pytest.mark.parametrize(
    ("law", "named"),
    [
        (lambda: laws.utilisation(-1, 1), "throughput_per_s"),
        (lambda: laws.customers(1, -1), "response_time_s"),
        (lambda: laws.throughput_per_s(1, 0), "response_time_s"),
        (lambda: laws.response_time_s(1, 0), "throughput_per_s"),
        (lambda: laws.service_demand_s(-1, 1), "visit_ratio"),
        (lambda: laws.measured_demand_s(1, 0), "throughput_per_s"),
        (lambda: laws.interactive_response_time_s(1, 1, -1), "think_time_s"),
        (lambda: laws.interactive_response_time_s(1, 1, 2), "less than think_time_s = 2"),
        (lambda: laws.general_response_time_s([1], [-1]), "visit_time_s"),
    ],
)
def test_a_value_outside_the_domain_is_named(law: Callable[[], float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        law()
