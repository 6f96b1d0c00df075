"""Computes probabilities and quantiles of Student's t, accurate to about 1e-10.

The probability to exceed a value is a regularised incomplete beta function, I_x(a, b), which is
summed as a power series of positive terms (M. Abramowitz and I. A. Stegun, Handbook of Mathematical
Functions, 26.5.4 and 26.7.1). Quantiles are found by halving intervals. Above MANY degrees of
freedom the expansion around the normal quantile (26.7.5) is more accurate.
"""

import math
from functools import lru_cache
from statistics import NormalDist

from loadtests.models.domain import count

MANY = 1000
_LEAST_P = 1e-10
_FAR = 0.98  # x from which on 1 − I_x is summed: its terms fall faster, and the tail is not small


@lru_cache(maxsize=1024)  # intervals with equal numbers of values need the same quantile
def quantile(p: float, degrees_of_freedom: int) -> float:
    """The t that a variable does not exceed with probability `p`, from 1e-10 to 1 − 1e-10."""
    count("degrees_of_freedom", degrees_of_freedom)
    if not _LEAST_P <= p <= 1 - _LEAST_P:
        raise ValueError(f"p must lie between {_LEAST_P} and 1 - {_LEAST_P}, is {p}")
    tail = min(p, 1 - p)
    found = _expanded if degrees_of_freedom > MANY else _halved
    return math.copysign(found(tail, degrees_of_freedom), p - 0.5)


def exceeds(t: float, degrees_of_freedom: int) -> float:
    """The probability that a variable exceeds `t`."""
    count("degrees_of_freedom", degrees_of_freedom)
    if math.isnan(t):
        raise ValueError("t must be a number, is nan")
    odds = t * t / degrees_of_freedom
    x, rest = 1 / (1 + odds), odds / (1 + odds)
    a, b = degrees_of_freedom / 2, 0.5
    tail = (_share(a, b, x, rest) if x < _FAR else 1 - _share(b, a, rest, x)) / 2
    return tail if t >= 0 else 1 - tail


def _halved(tail: float, degrees_of_freedom: int) -> float:
    """The t ≥ 0 that is exceeded with probability `tail` ≤ 1/2."""
    low, high = 0.0, 1.0
    while exceeds(high, degrees_of_freedom) > tail:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        if exceeds(middle, degrees_of_freedom) > tail:
            low = middle
        else:
            high = middle
    return high if tail < 0.5 else 0.0


def _expanded(tail: float, degrees_of_freedom: int) -> float:
    z, v = -NormalDist().inv_cdf(tail), float(degrees_of_freedom)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / v**power for power, term in enumerate(terms, start=1))


def _share(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b), with rest = 1 − x known to all its digits."""
    if x == 0:
        return 0.0
    logs = math.lgamma(a + b) - math.lgamma(a + 1) - math.lgamma(b)
    term = math.exp(logs + a * math.log(x) + b * math.log(rest))
    total, n = 0.0, 0
    while term > 1e-17 * total:
        total += term
        term *= (a + b + n) / (a + 1 + n) * x
        n += 1
    return total
