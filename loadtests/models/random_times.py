"""Draws random times, arrivals and services, with the `random.Random` of the caller.

Arrivals of an open workload are a Poisson process, or at equal gaps: either so many, or all before
a time. A distribution of service times has a mean in seconds, a coefficient of variation cv
(standard deviation over mean) and a `draw`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, repeat, takewhile
from math import inf
from random import Random

from loadtests.models.domain import positive


def poisson_times(
    rate_per_s: float, rng: Random, *, count: int | None = None, until_s: float | None = None
) -> list[float]:
    """Return arrival times of a Poisson process: independent exponential gaps of mean 1/rate."""
    rate = positive("rate_per_s", rate_per_s)
    return _until((rng.expovariate(rate) for _ in repeat(None)), count, until_s)


def deterministic_times(
    rate_per_s: float, *, count: int | None = None, until_s: float | None = None
) -> list[float]:
    """Return arrival times at equal gaps of 1/rate, the first one gap after the start."""
    gap_s = 1 / positive("rate_per_s", rate_per_s)
    return _until(repeat(gap_s), count, until_s)


def _until(gaps_s: Iterator[float], count: int | None, until_s: float | None) -> list[float]:
    if (count is None) == (until_s is None):
        raise ValueError(f"either count or until_s is needed, not {count} and {until_s}")
    if count is not None and count < 1:
        raise ValueError(f"count is {count}; a schedule has at least 1 arrival")
    end_s = inf if until_s is None else positive("until_s", until_s)
    return list(takewhile(lambda at_s: at_s < end_s, islice(accumulate(gaps_s), count)))


@dataclass(frozen=True, slots=True)
class Gamma:
    """Draws gamma distributed times: always the same at cv = 0, exponential ones at cv = 1."""

    mean_s: float
    cv: float

    def draw(self, rng: Random) -> float:
        """Draw a time of shape 1/cv² and scale E[S]·cv²."""
        if self.cv == 0:
            return self.mean_s
        if self.cv == 1:
            return rng.expovariate(1 / self.mean_s)
        return rng.gammavariate(self.cv**-2, self.mean_s * self.cv**2)
