"""What wrk measured, out of what it prints."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.wrk import Recorded, parsed, uncorrected

PRINTED = """\
  Latency Distribution
     50%    1.00ms
     75%    1.00ms
     90%    1.00ms
     99%    9.00ms
  {requests} requests in 1.00s, 1.00MB read
{errors}Requests/sec:  {requests}
Transfer/sec:      1.00MB
Recorded 1000000 us {requests} requests: {histogram}
"""


def printed(requests: int, histogram: str, errors: str = "") -> str:
    return PRINTED.format(requests=requests, histogram=histogram, errors=errors)


def corrected(latencies_us: dict[int, int], expected_us: int) -> dict[int, int]:
    """What `stats_correct` of wrk makes of a histogram."""
    counts = Counter(latencies_us)
    for us in range(2 * expected_us, max(latencies_us) + 1):
        count, added = counts[us], us - expected_us
        while count and added > expected_us:
            counts[added] += count
            added -= expected_us
    return dict(counts)


@given(
    st.dictionaries(st.integers(1, 400), st.integers(1, 9), min_size=1, max_size=40),
    st.integers(1, 450),
)
def test_the_requests_that_wrk_invents_are_taken_out_again(
    latencies_us: dict[int, int], expected_us: int
) -> None:
    invented = {us: count for us, count in corrected(latencies_us, expected_us).items() if count}
    assert uncorrected(invented, expected_us) == latencies_us


def test_one_slow_request_is_one_request() -> None:
    # 5 of 1 ms on one connection, one of which wrk makes 994 more: 1 s is 1000 times 1 ms
    invented = corrected({1000: 4, 996_000: 1}, 200_000)
    histogram = " ".join(f"{us} {count}" for us, count in sorted(invented.items()))
    load = parsed(printed(5, histogram), connections=1)
    assert load.recorded == Recorded(1.0, {1000: 4, 996_000: 1})


def test_a_histogram_that_does_not_fit_the_requests_tells_nothing() -> None:
    assert parsed(printed(5, "1000 4"), connections=1).recorded is None


def test_requests_beyond_the_timeout_are_errors_and_not_in_the_histogram() -> None:
    errors = "  Socket errors: connect 0, read 0, write 0, timeout 1\n"
    load = parsed(printed(5, "1000 4", errors), connections=1)
    assert load.recorded is not None
    assert load.recorded.requests == 4
    assert load.failed == 1


@pytest.mark.parametrize(("percent", "seconds"), [(1, 0.001), (50, 0.001), (75, 0.002), (99, 0.1)])
def test_percentiles_are_requests_that_were_made(percent: float, seconds: float) -> None:
    assert Recorded(1.0, {1000: 2, 2000: 1, 100_000: 1}).percentile_s(percent) == seconds


def test_of_no_requests_nothing_is_said() -> None:
    nothing = Recorded(1.0, {})
    assert nothing.percentile_s(50) is None
