"""The universal scalability law: what is fitted, its knee, and how sure that is."""

from math import inf, isclose, sqrt
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.lab.scalability import ScalabilityLaw, fit, knee_interval

CLIENTS = [1, 2, 4, 8, 16, 32, 64]
LAWS = st.builds(
    ScalabilityLaw,
    rate_per_s=st.floats(0.01, 1e5),
    contention=st.floats(0.001, 0.9),
    coherency=st.floats(1e-5, 0.1),
)


def exact(law: ScalabilityLaw) -> dict[int, list[float]]:
    return {n: [law.throughput_per_s(n)] for n in CLIENTS}


def noisy(law: ScalabilityLaw, rng: Random, times: int = 6) -> dict[int, list[float]]:
    return {
        n: [law.throughput_per_s(n) * rng.gauss(1, 0.02) for _ in range(times)] for n in CLIENTS
    }


@given(LAWS)
def test_exact_throughputs_give_the_law_back(law: ScalabilityLaw) -> None:
    found = fit(exact(law))
    assert isclose(found.rate_per_s, law.rate_per_s, rel_tol=1e-7)
    assert isclose(found.contention, law.contention, rel_tol=1e-6, abs_tol=1e-8)
    assert isclose(found.coherency, law.coherency, rel_tol=1e-6)
    assert isclose(found.knee, law.knee, rel_tol=1e-5)


@given(LAWS)
def test_the_knee_has_the_highest_throughput(law: ScalabilityLaw) -> None:
    assert law.knee == max(1, sqrt((1 - law.contention) / law.coherency))
    assert law.throughput_per_s(1) == law.rate_per_s
    for factor in (0.9, 1.1):
        other = max(1.0, factor * law.knee)
        assert law.throughput_per_s(other) <= law.throughput_per_s(law.knee) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_two_per_cent_moves_a_fit_by_little(seed: int) -> None:
    law = ScalabilityLaw(100.0, 0.05, 0.002)
    found = fit(noisy(law, Random(seed)))
    assert found.rate_per_s == pytest.approx(law.rate_per_s, rel=0.03)
    assert found.knee == pytest.approx(law.knee, rel=0.06)


@pytest.mark.parametrize(
    ("law", "knee"),
    [
        (ScalabilityLaw(100.0, 0.0, 0.0), inf),
        (ScalabilityLaw(100.0, 0.2, 0.0), inf),
        (ScalabilityLaw(100.0, 0.0, 0.01), 10),
    ],
)
def test_laws_on_the_edge_are_found_on_the_edge(law: ScalabilityLaw, knee: float) -> None:
    found = fit(exact(law))
    assert found.contention == pytest.approx(law.contention, abs=1e-9)
    assert found.coherency == pytest.approx(law.coherency, abs=1e-9)
    assert law.knee == pytest.approx(knee)


def test_throughput_that_grows_faster_than_its_clients_has_neither_share() -> None:
    found = fit({1: [10.0], 2: [21.0], 4: [44.0], 8: [90.0]})
    assert (found.contention, found.coherency, found.knee) == (0, 0, inf)


def test_one_client_may_do_best() -> None:
    assert ScalabilityLaw(10.0, 1.5, 0.0).knee == 1
    assert ScalabilityLaw(10.0, 0.9, 3.0).knee == 1
    assert fit({1: [10.0], 2: [7.0], 4: [4.0]}).knee == 1


def test_the_same_seed_gives_the_same_interval() -> None:
    measured = noisy(ScalabilityLaw(100.0, 0.05, 0.002), Random(1))
    low, high = knee_interval(measured, Random(2))
    assert (low, high) == knee_interval(measured, Random(2))
    assert low <= fit(measured).knee <= high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit({1: [1.0], 2: [2.0]}), "three different N, there are 2"),
        (lambda: fit({0: [1.0], 1: [1.0], 2: [2.0]}), "N must be a whole number of at least 1"),
        (lambda: fit({1: [1.0], 2: [0.0], 3: [2.0]}), "throughput at N = 2 must be a positive"),
        (lambda: fit({1: [1.0], 2: [], 3: [2.0]}), "at least one value"),
        (
            lambda: knee_interval({1: [1.0], 2: [1.5], 3: [2.0]}, Random(1)),
            "every N was measured once",
        ),
        (lambda: ScalabilityLaw(1.0, -0.1, 0.0), "contention must be 0 or a positive"),
        (lambda: ScalabilityLaw(1.0, 0.1, 0.0).throughput_per_s(0), "customers must be a positive"),
    ],
)
def test_what_cannot_be_fitted_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
