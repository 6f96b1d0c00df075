"""Computes arrival times of an open workload, from its start on: at random, or at equal gaps."""

from collections.abc import Iterator
from itertools import repeat
from math import inf
from random import Random

from loadtests.models.domain import positive


def poisson_times(
    rate_per_s: float, rng: Random, *, count: int | None = None, until_s: float | None = None
) -> list[float]:
    """Arrival times of a Poisson process: independent exponential gaps of mean 1/rate.

    Either `count` arrivals, or all before `until_s`. Raises ValueError.
    """
    rate = positive("rate_per_s", rate_per_s)
    return _until((rng.expovariate(rate) for _ in repeat(None)), count, until_s)


def deterministic_times(
    rate_per_s: float, *, count: int | None = None, until_s: float | None = None
) -> list[float]:
    """Arrival times at equal gaps of 1/rate, the first one gap after the start.

    Either `count` arrivals, or all before `until_s`. Raises ValueError.
    """
    gap_s = 1 / positive("rate_per_s", rate_per_s)
    return _until(repeat(gap_s), count, until_s)


def _until(gaps_s: Iterator[float], count: int | None, until_s: float | None) -> list[float]:
    if (count is None) == (until_s is None):
        raise ValueError(f"either count or until_s is needed, not {count} and {until_s}")
    if count is not None and count < 1:
        raise ValueError(f"count is {count}; a schedule has at least 1 arrival")
    end_s = inf if until_s is None else positive("until_s", until_s)
    times_s: list[float] = []
    at_s = 0.0
    while count is None or len(times_s) < count:
        at_s += next(gaps_s)
        if at_s >= end_s:
            break
        times_s.append(at_s)
    return times_s
