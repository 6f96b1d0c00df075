"""How often a confidence sequence holds at all numbers of values, for normal and other values.

With 1500 experiments of 60 values it once left the mean out in 2.9 % (normal), 4.7 % (uniform),
4.5 % (gamma, skewness 1) and 11.8 % (exponential): values as skewed as these need an interval of
another kind.
"""

from collections.abc import Callable
from math import sqrt
from random import Random

import pytest

from loadtests.models.estimates import Verdict, confidence_interval
from loadtests.models.random_times import poisson_times
from loadtests.models.replay import fcfs
from loadtests.models.sequential import LEAST_VALUES, confidence_sequence, sequential_verdict
from tests.effort import tries

pytestmark = pytest.mark.slow

EXPERIMENTS, VALUES = tries(400, exploring=1500), 60
PAIRS = tries(30, exploring=60)
LOAD, ARRIVALS, SKIPPED = 0.85, 260, 200


def paired_difference(rng: Random, slower: float = 1.0) -> float:
    """Of a run at 0.85 whose E[S] was calibrated with an error of 0.3 %: measured − replayed."""
    arrivals_s = poisson_times(LOAD, rng, count=ARRIVALS)
    services_s = [rng.gammavariate(100, 0.01) for _ in arrivals_s]
    by = slower * (1 + 0.003 * rng.gauss(0, 1))
    measured_s = fcfs(arrivals_s, [by * time_s for time_s in services_s])[SKIPPED:]
    replayed_s = fcfs(arrivals_s, services_s)[SKIPPED:]
    return (sum(measured_s) - sum(replayed_s)) / len(measured_s)


def ever_left_out(values: list[float], mean: float) -> bool:
    return any(
        not confidence_sequence(values[:number]).covers(mean)
        for number in range(LEAST_VALUES, len(values) + 1)
    )


@pytest.mark.parametrize(
    ("draw", "mean", "most"),
    [
        pytest.param(lambda rng: rng.gauss(0, 1), 0.0, 0.05, id="normal"),
        pytest.param(lambda rng: rng.random(), 0.5, 0.05, id="uniform"),
        pytest.param(lambda rng: rng.gammavariate(4, 0.25), 1.0, 0.08, id="skewness 1"),
        pytest.param(lambda rng: rng.expovariate(1), 1.0, 0.15, id="skewness 2"),
    ],
)
def test_it_leaves_the_mean_out_as_seldom_as_it_says(
    draw: Callable[[Random], float], mean: float, most: float
) -> None:
    rng = Random(1)
    left_out = sum(
        ever_left_out([draw(rng) for _ in range(VALUES)], mean) for _ in range(EXPERIMENTS)
    )
    assert left_out / EXPERIMENTS <= most + 3 * sqrt(most / EXPERIMENTS)


def test_looking_again_and_again_spoils_an_interval_for_one_look() -> None:
    rng = Random(2)
    wrong = 0
    for _ in range(300):
        values = [rng.gauss(0, 1) for _ in range(VALUES)]
        wrong += any(
            not confidence_interval(values[:number]).covers(0)
            for number in range(LEAST_VALUES, VALUES + 1)
        )
    assert wrong / 300 > 0.2


def test_pairs_of_a_busy_queue_are_judged_rightly_however_often_one_looks() -> None:
    """A server as calibrated is never said to disagree, and one that is 2 % slower to agree."""
    rng = Random(3)
    predicted = 1 + LOAD * 1.01 / (2 * (1 - LOAD))
    wrong = 0
    for slower, impossible in ((1.0, Verdict.DISAGREES), (1.02, Verdict.AGREES)):
        for _ in range(PAIRS):
            values = [paired_difference(rng, slower) for _ in range(25)]
            verdicts = [sequential_verdict(values[:number], predicted) for number in range(5, 26)]
            wrong += impossible in verdicts
    assert wrong / (2 * PAIRS) <= 0.05 + 3 * sqrt(0.05 / (2 * PAIRS))
