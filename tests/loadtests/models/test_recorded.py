"""Customers over time in recorded runs, and the load average."""

from itertools import pairwise
from math import exp, isclose

from hypothesis import given
from hypothesis import strategies as st

from loadtests.models import recorded
from loadtests.models.recorded import Step, customers_over_time

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
    assert recorded.mean_customers([], 0, 8) == 0


@given(runs())
def test_steps_count_who_has_arrived_and_not_left(run: tuple[list[float], list[float]]) -> None:
    arrivals, departures = run
    steps = customers_over_time(arrivals, departures)
    assert all(a.time_s < b.time_s and a.customers != b.customers for a, b in pairwise(steps))
    for at in {0.0, *arrivals, *departures}:
        inside = sum(a <= at < d for a, d in zip(arrivals, departures, strict=True))
        assert recorded.customers_at(steps, at) == inside


def test_figure_5_rises_and_falls_with_a_minutes_time_constant() -> None:
    busy = customers_over_time([0.0, 0.0], [300.0, 300.0])
    load = dict(recorded.load_average(busy, 600.0))
    assert isclose(load[55.0], 1 - exp(-1))
    assert isclose(load[295.0], 1 - exp(-5))
    assert isclose(load[355.0], load[295.0] * exp(-1))
    both = recorded.load_average(busy, 600.0, servers=2)
    assert all(isclose(value, 2 * load[at_s]) for at_s, value in both)
