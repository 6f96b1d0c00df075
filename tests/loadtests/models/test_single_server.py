"""M/M/1, M/G/1 and M/G/1-PS, against the study and their special cases."""

import re
from math import isclose, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import open_queue
from loadtests.models.open_queue import Unstable, mgm, shared

from .study import SERVICE_CV, SERVICE_TIME_S, STUDY, same

RHO = st.floats(1e-6, 0.999)
TIME_S = st.floats(1e-6, 1e6)
CV = st.floats(0, 50)


@pytest.mark.parametrize("row", STUDY["open"], ids=lambda row: row["fraction"])
def test_the_studys_open_model_to_nine_digits(row: dict[str, float]) -> None:
    rate = row["fraction"] * open_queue.maximum_rate_per_s(SERVICE_TIME_S)
    fcfs = mgm(rate, SERVICE_TIME_S, SERVICE_CV)
    assert same(rate, row["arrival_rate_per_s"])
    assert same(1 / rate, row["gap_s"])
    assert same(fcfs.utilisation, row["fraction"])
    assert same(fcfs.waiting_time_s, row["waiting_time_s"])
    assert same(fcfs.response_time_s, row["fcfs_s"])
    assert same(fcfs.customers, row["customers"])
    assert same(shared(rate, SERVICE_TIME_S).response_time_s, row["processor_sharing_s"])


@pytest.mark.parametrize("row", STUDY["open_as_printed"], ids=lambda row: row[0])
def test_the_studys_open_model_as_it_was_printed(row: list[float]) -> None:
    fraction, fcfs_s, ps_s = row
    rate = fraction / SERVICE_TIME_S
    found_s = mgm(rate, SERVICE_TIME_S, SERVICE_CV).response_time_s
    assert isclose(found_s, fcfs_s, abs_tol=1e-5)
    assert isclose(shared(rate, SERVICE_TIME_S).response_time_s, ps_s, abs_tol=1e-5)


@pytest.mark.parametrize("row", STUDY["endpoints"], ids=lambda row: row["name"])
def test_the_studys_other_endpoints(row: dict[str, Any]) -> None:
    maximum = open_queue.maximum_rate_per_s(row["service_time_s"])
    assert same(maximum, row["maximum_rate_per_s"])
    for fraction, response_s in row["fcfs_s"]:
        cv = row["service_variance_s2"] ** 0.5 / row["service_time_s"]
        queue = mgm(fraction * maximum, row["service_time_s"], cv)
        assert same(queue.response_time_s, response_s)


@given(RHO, TIME_S, CV)
def test_the_formula_as_the_study_prints_it_is_the_same(rho: float, s: float, cv: float) -> None:
    rate, mu, variance = rho / s, 1 / s, (cv * s) ** 2
    printed = (rho + rate * mu * variance) / (2 * (mu - rate))
    assert isclose(mgm(rate, s, cv).waiting_time_s, printed, rel_tol=1e-9)


@given(RHO, TIME_S)
def test_mg1_with_exponential_service_is_mm1(rho: float, s: float) -> None:
    general, exponential = mgm(rho / s, s, 1), shared(rho / s, s)
    assert same(general.response_time_s, exponential.response_time_s)
    assert isclose(exponential.response_time_s, 1 / (1 / s - rho / s), rel_tol=1e-9)
    assert isclose(exponential.customers, rho / (1 - rho), rel_tol=1e-9, abs_tol=1e-300)


@given(RHO, TIME_S)
def test_processor_sharing_is_blind_to_variance_and_fcfs_is_not(rho: float, s: float) -> None:
    means = shared(rho / s, s)
    assert same(means.response_time_s, s / (1 - rho))
    assert mgm(rho / s, s, 0.5).response_time_s <= means.response_time_s
    assert mgm(rho / s, s, 2).response_time_s >= means.response_time_s


@given(RHO, TIME_S, CV)
def test_littles_law_and_the_parts_of_the_mean(rho: float, s: float, cv: float) -> None:
    queue = mgm(rho / s, s, cv)
    assert queue.response_time_s == queue.waiting_time_s + s
    assert isclose(queue.customers, queue.customers_waiting + queue.utilisation, rel_tol=1e-9)


@given(TIME_S, st.floats(1, 100))
def test_a_queue_that_grows_without_end_has_no_number(s: float, rho: float) -> None:
    for model in (mgm, shared):
        with pytest.raises(Unstable, match=re.escape(f"E[S] = {s:.6g} s") + ".* utilisation ρ of"):
            model(rho * open_queue.maximum_rate_per_s(s), s)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 1, 0), "arrival_rate_per_s must be 0 or a positive number, is -1"),
        ((0.1, 0, 0), "service_time_s must be a positive number, is 0"),
        ((0.1, nan, 0), "service_time_s must be a positive number, is nan"),
        ((0.1, 1, -2), "cv must be 0 or a positive number, is -2"),
    ],
)
def test_a_value_outside_the_domain_is_named(
    arguments: tuple[float, float, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mgm(*arguments)
