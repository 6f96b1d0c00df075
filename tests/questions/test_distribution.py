"""Median, 90th percentile and histogram, against lists of all delays."""

from collections import Counter
from itertools import pairwise
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.questions.answer_types import Bin, Distribution
from backend.questions.counts import distribution_of

delays = st.lists(
    st.integers(-10000, 10000)
    | st.integers(-80, 200)
    | st.sampled_from((-61, -60, -1, 0, 179, 180))
)


@given(delays)
def test_median_and_p90_are_those_of_the_sorted_list(some: list[int]) -> None:
    distribution = distribution_of(Counter(some))
    if not some:
        assert distribution == Distribution(None, None, [])
        return
    assert distribution.median == median(some)
    assert distribution.p90 in some
    assert 10 * sum(delay <= distribution.p90 for delay in some) >= 9 * len(some)
    assert 10 * sum(delay < distribution.p90 for delay in some) < 9 * len(some)


@given(delays)
def test_bins_hold_each_flight_once_and_have_no_gaps(some: list[int]) -> None:
    bins = distribution_of(Counter(some)).histogram
    for low, high in pairwise(bins):
        assert low.to == high.from_ is not None
    for bin_ in bins:
        inside = [
            delay
            for delay in some
            if (bin_.from_ is None or bin_.from_ <= delay) and (bin_.to is None or delay < bin_.to)
        ]
        assert bin_.flights == len(inside)
        if bin_.from_ is not None and bin_.to is not None:
            assert bin_.to - bin_.from_ == 15
    assert sum(bin_.flights for bin_ in bins) == len(some)
    assert all(bin_.flights for bin_ in (bins[:1] + bins[-1:]))


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
