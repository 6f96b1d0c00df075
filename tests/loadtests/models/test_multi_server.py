"""M/M/m, against the report on MariaDB, exact fractions and its limits; and queues as objects."""

from fractions import Fraction
from math import factorial, isclose, sqrt
from random import Random
from statistics import NormalDist, fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import replay
from loadtests.models.open_queue import ONE, Queue, Unstable, mgm
from loadtests.models.random_times import Gamma, poisson_times

from .study import STUDY, same

RHO = st.floats(1e-6, 0.999)
SERVERS = st.integers(1, 200)


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


@given(RHO, st.floats(1e-6, 1e6))
def test_one_server_is_mm1(rho: float, s: float) -> None:
    many = mgm(rho / s, s, 1.0, 1)
    assert same(many.response_time_s, s / (1 - rho))
    assert isclose(many.p_wait, rho, rel_tol=1e-9, abs_tol=1e-300)


@given(RHO, SERVERS)
def test_littles_law_and_the_range_of_probabilities(rho: float, servers: int) -> None:
    queue = mgm(rho * servers, 1.0, 1.0, servers)
    assert 0 <= queue.p_wait <= 1
    assert isclose(queue.customers - queue.customers_waiting, rho * servers, abs_tol=1e-7)


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


@given(RHO, st.floats(0, 5))
def test_it_is_exact_for_one_server(rho: float, cv: float) -> None:
    exact_s = rho * (1 + cv**2) / (2 * (1 - rho))  # Pollaczek and Khinchine
    assert same(mgm(rho, 1.0, cv).waiting_time_s, exact_s)


def test_a_cv_below_0_and_too_much_work_are_refused() -> None:
    with pytest.raises(ValueError, match="cv must be"):
        mgm(1.0, 0.5, -1.0, 2)
    with pytest.raises(Unstable):
        mgm(5.0, 0.5, 1.0, 2)


QUEUES = [ONE, Queue(3)]


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_the_mean_of_a_long_replay_is_the_formulas(queue: Queue) -> None:
    random, law = Random(5), Gamma(1.0, 1.0)
    rate_per_s = 0.6 * queue.servers
    times_s = poisson_times(rate_per_s, random, count=60_000)
    replayed_s = queue.replayed_s(times_s, [law.draw(random) for _ in times_s])
    expected_s = queue.steady(rate_per_s, law.mean_s, law.cv).response_time_s
    assert fmean(replayed_s) == pytest.approx(expected_s, rel=0.05)


def test_requests_replayed_one_by_one_are_in_order_of_arrival() -> None:
    times_s, services_s = [0.0, 0.0, 1.0], [2.0, 1.0, 1.0]
    assert ONE.replayed_s(times_s, services_s) == replay.fcfs(times_s, services_s)


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_too_much_work_has_no_steady_state(queue: Queue) -> None:
    with pytest.raises(Unstable):
        queue.steady(1.01 * queue.servers, 1.0, 0.5)


def test_names_tell_servers() -> None:
    assert [queue.name for queue in QUEUES] == ["M/G/1", "M/G/3"]
