"""Draws Poisson arrivals: the gaps between them are exponential and independent."""

from random import Random

from loadtests.models.domain import count, positive


def poisson_during(rate_per_s: float, duration_s: float, rng: Random) -> list[float]:
    """Arrival times (s) between 0 and `duration_s`; the first comes after an exponential gap too.

    Their number is random, on average rate·duration, and may be 0. Raises ValueError unless rate
    and duration are positive.
    """
    positive("rate_per_s", rate_per_s)
    positive("duration_s", duration_s)
    times_s = []
    now_s = rng.expovariate(rate_per_s)
    while now_s < duration_s:
        times_s.append(now_s)
        now_s += rng.expovariate(rate_per_s)
    return times_s


def poisson_count(rate_per_s: float, arrivals: int, rng: Random) -> list[float]:
    """Times (s) of the first `arrivals` arrivals.

    Raises ValueError unless the rate is positive and `arrivals` at least 1.
    """
    positive("rate_per_s", rate_per_s)
    count("arrivals", arrivals)
    times_s = []
    now_s = 0.0
    for _ in range(arrivals):
        now_s += rng.expovariate(rate_per_s)
        times_s.append(now_s)
    return times_s
