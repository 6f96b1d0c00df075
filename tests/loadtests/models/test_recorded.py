"""Customers over time, Little's law and utilisation of recorded runs, and the study's curves."""

from itertools import pairwise
from math import exp, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import curves, recorded, replay
from loadtests.models.recorded import Step, customers_over_time
from loadtests.models.steady_state import Unstable

from .study import SERVICE_TIME_S, SERVICE_VARIANCE_S2, STUDY, same

ARRIVALS = [0.0, 1.0, 1.0, 6.0]
DEPARTURES = [3.0, 4.0, 5.0, 8.0]
STEPS = [Step(0, 1), Step(1, 3), Step(3, 2), Step(4, 1), Step(5, 0), Step(6, 1), Step(8, 0)]


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Arrivals in order and departures in any, in quarters, one customer at least."""
    quarters = st.integers(0, 200).map(lambda number: number / 4)
    arrivals = sorted(draw(st.lists(quarters, min_size=1, max_size=20)))
    stays = draw(st.lists(quarters, min_size=len(arrivals), max_size=len(arrivals)))
    return arrivals, [a + s for a, s in zip(arrivals, stays, strict=True)]


def test_the_steps_of_a_small_run() -> None:
    assert customers_over_time(ARRIVALS, DEPARTURES) == STEPS
    assert recorded.peak_customers(STEPS) == 3
    assert [recorded.customers_at(STEPS, at) for at in (-1, 0, 0.5, 1, 4.5, 5, 9)] == [
        0, 1, 1, 3, 1, 0, 0,
    ]  # fmt: skip


def test_time_averages_of_a_small_run() -> None:
    area = 1 * 1 + 2 * 3 + 1 * 2 + 1 * 1 + 2 * 1
    assert recorded.mean_customers(STEPS, 0, 8) == area / 8
    assert recorded.mean_customers(STEPS, -2, 10) == area / 12
    assert recorded.mean_customers(STEPS, 2, 4) == (3 + 2) / 2
    assert recorded.utilisation(STEPS, 0, 8) == 7 / 8
    assert recorded.utilisation(STEPS, 0, 8, servers=2) == (1 + 4 + 2 + 1 + 2) / 16
    assert recorded.mean_customers([], 0, 8) == 0


@given(runs())
def test_steps_count_who_has_arrived_and_not_left(run: tuple[list[float], list[float]]) -> None:
    arrivals, departures = run
    steps = customers_over_time(arrivals, departures)
    assert all(a.time_s < b.time_s and a.customers != b.customers for a, b in pairwise(steps))
    for at in {0.0, *arrivals, *departures}:
        inside = sum(a <= at < d for a, d in zip(arrivals, departures, strict=True))
        assert recorded.customers_at(steps, at) == inside


@given(runs())
def test_littles_law_is_exact_where_the_system_is_empty_at_both_ends(
    run: tuple[list[float], list[float]],
) -> None:
    found = recorded.littles_law(*run, 0.0, max(run[1]) + 1)
    assert isclose(found.difference, 0, abs_tol=1e-9)
    assert isclose(found.customers, found.arrival_rate_per_s * found.response_time_s, abs_tol=1e-9)


def test_littles_law_of_a_window_that_cuts_customers_says_by_how_much() -> None:
    found = recorded.littles_law(ARRIVALS, DEPARTURES, 0.5, 2.5)
    assert found.customers == (0.5 * 1 + 1.5 * 3) / 2
    assert found.arrival_rate_per_s == 1
    assert found.response_time_s == 3.5
    assert found.difference == 2.5 - 3.5
    assert recorded.littles_law(ARRIVALS, DEPARTURES, 5.0, 6.0).predicted_customers == 0


@given(runs(), st.integers(1, 4))
def test_busy_servers_are_the_work_done(run: tuple[list[float], list[float]], m: int) -> None:
    arrivals, services = run[0], [d - a for a, d in zip(*run, strict=True)]
    responses = replay.multi_server(arrivals, services, m)
    departures = [a + r for a, r in zip(arrivals, responses, strict=True)]
    end = max(departures) + 1
    found = recorded.utilisation(customers_over_time(arrivals, departures), 0, end, m)
    assert isclose(found * m * end, sum(services), abs_tol=1e-9)


@pytest.mark.parametrize(
    ("arrivals", "departures", "message"),
    [
        ([0.0], [], "arrivals_s and departures_s must be equally long, are 1 and 0"),
        ([1.0, 0.0], [2.0, 2.0], "customer 1 arrives at 0.0 after one at 1.0"),
        ([1.0], [0.5], "customer 0 arrives at 1.0 and leaves earlier, at 0.5"),
    ],
)
def test_a_run_that_cannot_be_is_refused(
    arrivals: list[float], departures: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        customers_over_time(arrivals, departures)


def test_an_empty_window_is_refused() -> None:
    for call in (recorded.mean_customers, recorded.utilisation):
        with pytest.raises(ValueError, match="the window from 2 s to 2 s is empty"):
            call(STEPS, 2, 2)


def test_figure_2_has_the_studys_means() -> None:
    rows = STUDY["open"]
    found = curves.response_against_load(
        SERVICE_TIME_S, SERVICE_VARIANCE_S2, [row["fraction"] for row in rows]
    )
    for point, row in zip(found, rows, strict=True):
        assert same(point.arrival_rate_per_s, row["arrival_rate_per_s"])
        assert same(point.fcfs_s, row["fcfs_s"])
        assert same(point.processor_sharing_s, row["processor_sharing_s"])
    with pytest.raises(Unstable):
        curves.response_against_load(1.0, 0.0, [1.0])


def test_figure_3_has_a_sample_for_each_ten_seconds_with_a_departure() -> None:
    found = curves.durations_over_time([0.0, 1.0, 2.0, 30.0], [4.0, 8.0, 27.0, 1.0])
    assert found == [
        curves.Durations(0.0, 2, 6.0, 8.0),
        curves.Durations(20.0, 1, 27.0, 27.0),
        curves.Durations(30.0, 1, 1.0, 1.0),
    ]


def test_figure_4_samples_the_customers() -> None:
    found = curves.customers_sampled(STEPS, 8.0, 2.0)
    assert [(s.time_s, s.value) for s in found] == [(0, 1), (2, 3), (4, 1), (6, 1), (8, 0)]


def test_figure_5_rises_and_falls_with_a_minutes_time_constant() -> None:
    busy = customers_over_time([0.0, 0.0], [300.0, 300.0])
    found = {s.time_s: s.value for s in curves.load_average(busy, 600.0)}
    assert isclose(found[55.0], 1 - exp(-1))
    assert isclose(found[295.0], 1 - exp(-5))
    assert isclose(found[355.0], found[295.0] * exp(-1))
    both = curves.load_average(busy, 600.0, servers=2)
    assert all(isclose(s.value, 2 * found[s.time_s]) for s in both)


def test_a_curve_needs_a_positive_sample() -> None:
    for call in (
        lambda: curves.customers_sampled(STEPS, 8.0, 0.0),
        lambda: curves.durations_over_time([0.0], [1.0], 0.0),
        lambda: curves.load_average(STEPS, 8.0, sample_s=0.0),
    ):
        with pytest.raises(ValueError, match="sample_s must be a positive number, is 0"):
            call()
