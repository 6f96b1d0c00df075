"""The operational laws, against Lazowska's book and the study on travel reservations."""

from collections.abc import Callable

import pytest

from loadtests.models import laws


def test_a_disk_of_40_requests_a_second_and_22_5_ms_each_is_busy_for_90_percent() -> None:
    assert laws.utilisation(40, 0.0225) == pytest.approx(0.9)
    assert laws.customers(40, 0.1) == pytest.approx(4)
    assert laws.throughput_per_s(4, 0.1) == pytest.approx(40)


@pytest.mark.parametrize(
    ("law", "named"),
    [
        (lambda: laws.utilisation(-1, 1), "throughput_per_s"),
        (lambda: laws.customers(1, -1), "response_time_s"),
        (lambda: laws.throughput_per_s(1, 0), "response_time_s"),
        (lambda: laws.service_demand_s(-1, 1), "visit_ratio"),
    ],
)
def test_a_value_outside_the_domain_is_named(law: Callable[[], float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        law()
