"""M/G/1, M/G/1-PS and M/M/m, against the reports, exact fractions and their limits; and queues."""

import re
from fractions import Fraction
from math import factorial, isclose, nan, sqrt
from random import Random
from statistics import NormalDist, fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import open_queue
from loadtests.models.open_queue import ONE, Queue, Unstable, mgm, shared
from loadtests.models.random_times import Gamma, poisson_times

from .study import SERVICE_CV, SERVICE_TIME_S, STUDY, same

RHO = st.floats(1e-6, 0.999)
TIME_S = st.floats(1e-6, 1e6)
CV = st.floats(0, 50)
SERVERS = st.integers(1, 200)

# --- one server ----------------------------------------------------------------------------------


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


@given(RHO, TIME_S, CV, SERVERS)
def test_littles_law_and_the_parts_of_the_mean(rho: float, s: float, cv: float, m: int) -> None:
    queue = mgm(rho * m / s, s, cv, m)
    assert queue.response_time_s == queue.waiting_time_s + s
    served = m * queue.utilisation
    assert isclose(queue.customers, queue.customers_waiting + served, rel_tol=1e-9)


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


# --- several servers -----------------------------------------------------------------------------


@pytest.mark.parametrize("row", STUDY["mmm"], ids=str)
def test_the_reports_stations_to_nine_digits(row: dict[str, Any]) -> None:
    queue = mgm(row["arrival_rate_per_s"], 1 / row["service_rate_per_s"], 1.0, row["servers"])
    assert same(queue.p_wait, row["p_wait"])
    assert same(queue.response_time_s, row["response_time_s"])


@given(st.integers(1, 60), st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100))
def test_the_definition_in_exact_fractions(servers: int, rho: Fraction) -> None:
    a = rho * servers
    all_busy = a**servers / factorial(servers) / (1 - rho)
    total = sum(a**k / factorial(k) for k in range(servers)) + all_busy
    queue = mgm(float(a), 1.0, 1.0, servers)
    assert isclose(queue.p_wait, all_busy / total, rel_tol=1e-9)


@pytest.mark.parametrize("servers", [1000, 100_000])
def test_very_many_servers_come_near_the_limit_of_halfin_and_whitt(servers: int) -> None:
    normal, beta = NormalDist(), 0.5
    rho = 1 - beta / sqrt(servers)
    limit = 1 / (1 + beta * normal.cdf(beta) / normal.pdf(beta))
    queue = mgm(rho * servers, 1.0, 1.0, servers)
    assert isclose(queue.p_wait, limit, rel_tol=0.5 / sqrt(servers))


def test_more_work_than_all_servers_can_do_is_unstable() -> None:
    with pytest.raises(Unstable, match=r"λ = 7/s .* E\[S\] = 0.5 s give 3 servers .* of 1.16667;"):
        mgm(7, 0.5, 1.0, 3)
    with pytest.raises(ValueError, match="servers must be a whole number of at least 1, is 0"):
        mgm(1, 0.5, 1.0, 0)


@given(RHO, SERVERS, st.floats(0, 5))
def test_general_service_waits_as_allen_and_cunneen_say(rho: float, m: int, cv: float) -> None:
    markov, general = mgm(rho * m, 1.0, 1.0, m), mgm(rho * m, 1.0, cv, m)
    expected_s = markov.waiting_time_s * (1 + cv**2) / 2
    assert isclose(general.waiting_time_s, expected_s, rel_tol=1e-12)


QUEUES = [ONE, Queue(3)]


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_the_mean_of_a_long_replay_is_the_formulas(queue: Queue) -> None:
    random, law = Random(5), Gamma(1.0, 1.0)
    rate_per_s = 0.6 * queue.servers
    times_s = poisson_times(rate_per_s, random, count=60_000)
    replayed_s = queue.replayed_s(times_s, [law.draw(random) for _ in times_s])
    expected_s = queue.steady(rate_per_s, law.mean_s, law.cv).response_time_s
    assert fmean(replayed_s) == pytest.approx(expected_s, rel=0.05)


def test_names_tell_servers() -> None:
    assert [queue.name for queue in QUEUES] == ["M/G/1", "M/G/3"]
