"""Computes the customers in the system, and the load average, from a recorded run.

A run is the arrival and departure times (s) of its customers, in order of arrival; departures may
be in any order. At the time of a departure the customer no longer counts in N; at the time of an
arrival the customer does.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

LOAD_SAMPLE_S = 5.0  # the time after which Linux counts again what runs or waits to run
LOAD_TIME_CONSTANT_S = 60.0  # that of the first of Linux's three load averages


class Step(NamedTuple):
    """Holds the number of customers in the system from `time_s` until the next step."""

    time_s: float
    customers: int


def customers_over_time(arrivals_s: Sequence[float], departures_s: Sequence[float]) -> list[Step]:
    """Return the steps of N(t), the first at the first arrival; before and after them N is 0."""
    changes = Counter(arrivals_s)
    changes.subtract(departures_s)
    times_s = sorted(time_s for time_s, change in changes.items() if change)
    return list(map(Step, times_s, accumulate(changes[time_s] for time_s in times_s)))


def customers_at(steps: Sequence[Step], time_s: float) -> int:
    """Return N at `time_s`."""
    after = bisect_right(steps, time_s, key=lambda step: step.time_s)
    return steps[after - 1].customers if after else 0


def peak_customers(steps: Sequence[Step]) -> int:
    """Return the most customers at once; 0 if there never was any."""
    return max((step.customers for step in steps), default=0)


def mean_customers(steps: Sequence[Step], from_s: float, until_s: float) -> float:
    """Return the time average of N from `from_s` to `until_s`."""
    areas = (
        max(0.0, min(until_s, following.time_s) - max(from_s, step.time_s)) * step.customers
        for step, following in pairwise(steps)  # after the last, N is 0
    )
    return sum(areas) / (until_s - from_s)


def load_average(
    steps: Sequence[Step], duration_s: float, servers: int = 1
) -> list[tuple[float, float]]:
    """Return times (s) and load averages of a machine where only customers in service run.

    Every LOAD_SAMPLE_S the average moves towards the number in service by the share
    1 − exp(−sample/time constant), as in Linux; it starts at 0. The time constant is fixed, so
    times that were divided are to be multiplied again before.
    """
    keep, average = math.exp(-LOAD_SAMPLE_S / LOAD_TIME_CONSTANT_S), 0.0
    samples = []
    for number in range(math.floor(duration_s / LOAD_SAMPLE_S) + 1):
        at_s = number * LOAD_SAMPLE_S
        average = average * keep + min(customers_at(steps, at_s), servers) * (1 - keep)
        samples.append((at_s, average))
    return samples
