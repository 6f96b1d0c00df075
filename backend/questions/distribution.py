"""Computes the distribution of delays: median, 90th percentile and histogram, all exact.

    median     the middle delay, or the mean of the middle two
    p90        the smallest delay that at least 90 % of the flights do not exceed
    histogram  bins of 15 minutes, `from` inclusive, `to` exclusive, without gaps from the lowest
               to the highest delay that occurs; the bins below -60 and from 180 on are open (null)

Without flights, the median and p90 are None and the histogram is empty.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

from backend.questions.answer_types import Bin, Distribution

BIN_MINUTES = 15
OPEN_BELOW, OPEN_FROM = -60, 180

_FIRST_BIN, _LAST_BIN = OPEN_BELOW // BIN_MINUTES - 1, OPEN_FROM // BIN_MINUTES


def distribution_of(counts: Mapping[int, int]) -> Distribution:
    """Return the distribution in which each delay (minutes) occurs `counts[delay]` times."""
    delays = sorted(counts)
    if not delays:
        return Distribution(None, None, [])
    up_to = list(accumulate(counts[delay] for delay in delays))
    flights = up_to[-1]

    def ranked(rank: int) -> int:
        """Return the delay at position `rank`, counted from 1, when all delays are sorted."""
        return delays[bisect_left(up_to, rank)]

    return Distribution(
        median=(ranked((flights + 1) // 2) + ranked(flights // 2 + 1)) / 2,
        p90=ranked(-(-flights * 9 // 10)),
        histogram=_histogram(counts),
    )


def _histogram(counts: Mapping[int, int]) -> list[Bin]:
    bins: Counter[int] = Counter()
    for delay, flights in counts.items():
        bins[max(_FIRST_BIN, min(delay // BIN_MINUTES, _LAST_BIN))] += flights
    return [
        Bin(
            from_=None if number == _FIRST_BIN else number * BIN_MINUTES,
            to=None if number == _LAST_BIN else (number + 1) * BIN_MINUTES,
            flights=bins[number],
        )
        for number in range(min(bins), max(bins) + 1)
    ]
