"""Median, 90th percentile and histogram, against a list of all delays."""

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import to_builtins

from backend.questions.counts import distribution_of
from tests.index.worlds import distribution

delays = st.lists(
    st.integers(-10000, 10000)
    | st.integers(-80, 200)
    | st.sampled_from((-61, -60, -1, 0, 179, 180))
)


@given(delays)
@example([-10000, -61, -60, -46, -45, -1, 0, 14, 15, 179, 180, 10000])
@example([*range(1, 10)])  # of which the last is the 90th percentile, as of ten
@example([*range(1, 11)])
@example([*range(1, 12)])
def test_it_is_that_of_the_list_of_all_delays(some: list[int]) -> None:
    assert to_builtins(distribution_of(Counter(some))) == distribution(some)
