"""Confidence intervals and verdicts."""

from math import isclose, sqrt
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models.estimates import (
    Interval,
    Verdict,
    batch_means,
    clustered_interval,
    confidence_interval,
    mean_over_runs,
    verdict,
    warm_up_of,
)
from loadtests.models.random_times import Gamma, poisson_times
from loadtests.models.replay import fcfs


def test_the_interval_of_five_values_by_hand() -> None:
    interval = confidence_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert interval.estimate == 3
    assert isclose(interval.half_width, 2.776 * sqrt(2.5 / 5), rel_tol=1e-3)
    assert interval.covers(3 + 1.96)
    assert not interval.covers(3 + 1.97)
    assert interval.plus(10).low == 10 + interval.low
    assert interval.ends == (interval.low, interval.high)
    assert confidence_interval([3.0]) == Interval(3.0)
    assert Interval(3.0).ends == (None, None)


@pytest.mark.parametrize(
    ("values", "states"),
    [
        ([3.0], True),
        ([2.9, 3.1], False),
        ([2.9, 3.0, 3.1], True),
        ([0.1, 3.0, 6.0], False),
    ],
)
def test_a_finding_has_no_interval_that_holds_0_or_is_of_two_values(
    values: list[float], states: bool
) -> None:
    assert confidence_interval(values).is_finding is states


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    rng = Random(11)
    covered = sum(
        confidence_interval([rng.gauss(7, 2) for _ in range(6)], 0.9).covers(7) for _ in range(2000)
    )
    assert isclose(covered / 2000, 0.9, abs_tol=4 * sqrt(0.09 / 2000))


@given(st.integers(2, 30), st.integers(1, 10), st.integers(0, 29))
def test_batches_leave_out_the_first_values_that_are_left_over(
    batches: int, size: int, more: int
) -> None:
    left_over = more % batches
    values = [1e9] * left_over + [float(n // size) for n in range(batches * size)]
    assert batch_means(values, batches).estimate == pytest.approx((batches - 1) / 2)
    assert batch_means(values, batches).values == batches


def test_runs_have_the_same_weight_and_a_single_one_is_cut_into_batches() -> None:
    runs = [[1.0, 2.0, 3.0], [6.0]]
    assert mean_over_runs(runs) == confidence_interval([2.0, 6.0])
    assert mean_over_runs(runs[:1]) == confidence_interval(runs[0])
    assert mean_over_runs([range(40)]) == batch_means(range(40))


def test_clusters_of_one_size_are_like_their_means() -> None:
    values = [1.0, 2.0, 4.0, 6.0, 3.0, 5.0]
    interval = clustered_interval(values, "aabbcc")
    means = confidence_interval([1.5, 5.0, 4.0])
    assert interval.estimate == pytest.approx(means.estimate)
    assert interval.half_width == pytest.approx(means.half_width)


def test_batches_see_the_correlation_that_single_values_hide() -> None:
    rng, service = Random(3), Gamma(1.0, 0.3)
    arrivals_s = poisson_times(0.8, rng, count=20_000)
    values = fcfs(arrivals_s, [service.draw(rng) for _ in arrivals_s])
    assert batch_means(values).half_width > 4 * confidence_interval(values).half_width


@pytest.mark.parametrize(("arrivals", "left"), [(201, 1), (1000, 800), (2000, 1800), (5001, 4500)])
def test_the_warm_up_is_200_arrivals_or_a_tenth(arrivals: int, left: int) -> None:
    assert arrivals - warm_up_of(arrivals) == left


@pytest.mark.parametrize(
    ("estimate", "half_width", "expected"),
    [
        (0.0, 4.9, Verdict.AGREES),
        (-2.0, 3.0, Verdict.AGREES),
        (3.5, 3.5, Verdict.NOT_DECIDED),
        (0.0, 90.0, Verdict.NOT_DECIDED),
        (8.0, 3.5, Verdict.NOT_DECIDED),
        (-8.0, 3.5, Verdict.NOT_DECIDED),
        (9.0, 3.5, Verdict.DISAGREES),
        (-9.0, 3.5, Verdict.DISAGREES),
    ],
)
def test_the_verdict_is_by_the_whole_interval(
    estimate: float, half_width: float, expected: Verdict
) -> None:
    assert verdict(Interval(estimate, half_width, 20), 100.0) is expected


def test_a_verdict_reads_as_words() -> None:
    assert [str(v) for v in Verdict] == ["agrees", "disagrees", "not decided"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confidence_interval([]), "at least two values, there are 0"),
        (lambda: verdict(Interval(0, 1, 2), 0.0), "predicted must be a positive number"),
    ],
)
def test_what_cannot_be_estimated_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
