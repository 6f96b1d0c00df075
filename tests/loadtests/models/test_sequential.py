"""Confidence sequences: their formula, and verdicts that may be asked at any time."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models.estimates import CONFIDENCE, Verdict, confidence_interval
from loadtests.models.sequential import (
    EFFECTS,
    LEAST_VALUES,
    confidence_sequence,
    sequential_verdict,
    values_needed,
)

VALUES = st.lists(st.floats(-100, 100), min_size=8, max_size=40).filter(
    lambda values: max(values) - min(values) > 1
)


def martingale(values: list[float], mean: float) -> float:
    """Mₙ(μ) as the docstring has it."""
    n, sums = len(values), sum(value - mean for value in values)
    squares = sum((value - mean) ** 2 for value in values)
    inner = 1 - sums**2 / ((n + 1 / EFFECTS) * squares)
    return float(math.sqrt(1 / (1 + n * EFFECTS)) * inner ** (-n / 2))


@given(VALUES)
def test_its_ends_are_where_the_martingale_reaches_its_level(values: list[float]) -> None:
    interval = confidence_sequence(values)
    for end in (interval.low, interval.high):
        assert martingale(values, end) == pytest.approx(1 / (1 - CONFIDENCE), rel=1e-6)
    assert martingale(values, interval.estimate) < 1


def test_it_is_wider_than_an_interval_for_one_look_but_not_much() -> None:
    rng = Random(1)
    values = [rng.gauss(0, 1) for _ in range(20)]
    ratio = confidence_sequence(values).half_width / confidence_interval(values).half_width
    assert 1 < ratio < 2


@pytest.mark.parametrize("number", [1, 2, 3])
def test_after_few_values_it_excludes_nothing(number: int) -> None:
    assert confidence_sequence([float(n) for n in range(number)]).half_width == math.inf


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.0, Verdict.AGREES), (20.0, Verdict.DISAGREES), (5.0, Verdict.NOT_DECIDED)],
)
def test_a_verdict_is_by_the_whole_sequence(mean: float, verdict: Verdict) -> None:
    rng = Random(2)
    values = [rng.gauss(mean, 1.0) for _ in range(20)]
    assert sequential_verdict(values, 100.0) is verdict
    assert sequential_verdict(values[: LEAST_VALUES - 1], 100.0) is Verdict.NOT_DECIDED


def test_it_says_how_many_more_values_are_needed() -> None:
    values = [1.0, -1.0, 2.0, -2.0, 0.5, -0.5]
    more = values_needed(values, 40.0)
    assert more
    alike = values * math.ceil((6 + more) / 6)
    assert sequential_verdict(alike, 40.0) is Verdict.AGREES
    assert values_needed(values, 4000.0) == 0
    assert values_needed(values[:1], 40.0) is None
    assert values_needed([2.0, 2.0 + 1e-12, 2.0], 40.0) is None  # on the edge for ever
