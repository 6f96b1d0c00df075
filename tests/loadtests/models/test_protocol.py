"""What short experiments are expected to see: the study's, and the long run."""

from math import isclose
from random import Random
from statistics import fmean
from typing import Any

import pytest

from loadtests.models import replay
from loadtests.models.open_queue import Queue, mgm, shared
from loadtests.models.protocol import expectation, simulate_run
from loadtests.models.random_times import Gamma
from loadtests.models.sample_statistics import variance_of

from .study import SERVICE_CV, SERVICE_TIME_S, STUDY

SERVICE = Gamma(SERVICE_TIME_S, SERVICE_CV)
STUDYS = 1800.0, 15  # seconds of a run, and runs


@pytest.mark.parametrize("row", STUDY["protocol"], ids=lambda row: row["fraction"])
def test_the_studys_runs_as_an_independent_simulation_has_them(row: dict[str, Any]) -> None:
    rate = row["fraction"] / SERVICE_TIME_S
    expected = expectation(*STUDYS, rate, SERVICE, Random(1), simulated_runs=4000)
    room_s = 4 * expected.standard_error_s
    assert isclose(expected.mean_s, row["mean_s"], abs_tol=room_s + 0.05)
    assert isclose(
        expected.arrivals, row["arrivals"], abs_tol=0.05 + 4 * (rate * 1800 / 4000) ** 0.5
    )
    # 4000 runs are 266 experiments of 15: their 2.5 % quantile has a standard error of 0.04 widths,
    # that of the 20 000 runs of the table 0.02; this allows for three of both together
    end_room_s = 0.14 * (expected.high_s - expected.low_s)
    assert isclose(expected.low_s, row["low_s"], abs_tol=end_room_s)
    assert isclose(expected.high_s, row["high_s"], abs_tol=end_room_s)
    # and what the study published lies in it
    assert expected.covers(row["measured_s"])


@pytest.mark.parametrize(
    ("discipline", "expected_s"),
    [
        (replay.fcfs, mgm(0.5, 1.0).response_time_s),
        (replay.processor_sharing, shared(0.5, 1.0).response_time_s),
        (Queue(2).replayed_s, mgm(0.5, 1.0, 1.0, 2).response_time_s),
    ],
)
def test_long_runs_come_to_the_steady_state(
    discipline: replay.Discipline, expected_s: float
) -> None:
    random = Random(3)
    runs = [simulate_run(4000.0, 0.5, Gamma(1.0, 1), random, discipline) for _ in range(60)]
    means_s = [run.mean_s for run in runs if run]
    room_s = 4 * (variance_of(means_s) / len(means_s)) ** 0.5
    assert isclose(fmean(means_s), expected_s, abs_tol=room_s)


def test_short_runs_stay_below_the_steady_state() -> None:
    rate = 0.85 / SERVICE_TIME_S
    expected = expectation(*STUDYS, rate, SERVICE, Random(2), simulated_runs=500)
    steady_s = mgm(rate, SERVICE_TIME_S, SERVICE_CV).response_time_s
    assert expected.mean_s + 4 * expected.standard_error_s < steady_s


def test_everybody_who_arrives_counts_and_is_served_to_the_end() -> None:
    """All arrive within 1 s at a server that takes 10 s for each."""
    run = simulate_run(1.0, 5.0, Gamma(10.0, 0.0), Random(4), replay.fcfs)
    assert run is not None
    assert run.arrivals > 1
    middle = 10 * (run.arrivals + 1) / 2
    assert middle - 1 < run.mean_s <= middle


def test_more_runs_narrow_the_range_and_the_same_seed_repeats_it() -> None:
    def range_s(runs: int) -> tuple[float, float]:
        expected = expectation(60.0, runs, 0.5, SERVICE, Random(9), simulated_runs=400)
        return expected.low_s, expected.high_s

    assert range_s(15) == range_s(15)
    assert range_s(1)[0] < range_s(15)[0] < range_s(15)[1] < range_s(1)[1]


def test_runs_without_a_customer_are_left_out() -> None:
    expected = expectation(10.0, 2, 0.1, Gamma(0.01, 1), Random(5), simulated_runs=1000)
    assert isclose(expected.arrivals, 1, abs_tol=0.13)
    assert expected.mean_s < 0.02


def test_requests_of_runs_with_many_wait_longer_than_the_mean_of_runs_says() -> None:
    expected = expectation(*STUDYS, 0.85 / SERVICE_TIME_S, SERVICE, Random(6), simulated_runs=500)
    assert expected.pooled_s > expected.mean_s


def test_an_experiment_that_says_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="too few arrivals: only 0 of 10 runs had a customer"):
        expectation(*STUDYS, 1e-9, SERVICE, Random(1), simulated_runs=10)
