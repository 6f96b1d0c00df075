"""Median, 90th percentile and histogram, against a list of all delays."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from backend.questions.answer_types import Bin
from backend.questions.counts import distribution_of
from tests.index.worlds import distribution

delays = st.lists(
    st.integers(-10000, 10000)
    | st.integers(-80, 200)
    | st.sampled_from((-61, -60, -1, 0, 179, 180))
)


@given(delays)
def test_it_is_that_of_the_list_of_all_delays(some: list[int]) -> None:
    assert to_builtins(distribution_of(Counter(some))) == distribution(some)


@pytest.mark.parametrize(
    ("delay", "low", "high"),
    [
        (-10000, None, -60),
        (-61, None, -60),
        (-60, -60, -45),
        (-1, -15, 0),
        (0, 0, 15),
        (14, 0, 15),
        (179, 165, 180),
        (180, 180, None),
        (10000, 180, None),
    ],
)
def test_the_bin_of_a_delay(delay: int, low: int | None, high: int | None) -> None:
    distribution = distribution_of({delay: 3})
    assert distribution.histogram == [Bin(low, high, 3)]
    assert (distribution.median, distribution.p90) == (delay, delay)


def test_ten_flights_are_the_ninth_in_order_at_90_percent() -> None:
    assert distribution_of(Counter(range(1, 11))).p90 == 9
    assert distribution_of(Counter(range(1, 12))).p90 == 10
    assert distribution_of(Counter(range(1, 10))).p90 == 9
