"""Computes quantiles of Student's t, accurate to 1e-6 from 0.0001 to 0.9999.

The probability that |T| is at most t is a finite sum for whole degrees of freedom (M. Abramowitz
and I. A. Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), which is inverted by
halving intervals. Above MANY degrees of freedom the expansion around the normal quantile (26.7.5)
is quicker.
"""

from functools import lru_cache
from math import atan2, cos, pi, sin, sqrt
from statistics import NormalDist

from loadtests.models.domain import count, share

MANY = 1000


@lru_cache(maxsize=1024)  # intervals with equal numbers of values need the same quantile
def quantile(p: float, degrees_of_freedom: int) -> float:
    """Return the t that a variable does not exceed with probability `p`."""
    count("degrees_of_freedom", degrees_of_freedom)
    if share("p", p) < 0.5:
        return -quantile(1 - p, degrees_of_freedom)
    if degrees_of_freedom > MANY:
        z = NormalDist().inv_cdf(p)
        second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
        return z + ((z**3 + z) / 4 + second / degrees_of_freedom) / degrees_of_freedom
    low, high = 0.0, 1.0
    while _within(high, degrees_of_freedom) < 2 * p - 1:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        if _within(middle, degrees_of_freedom) < 2 * p - 1:
            low = middle
        else:
            high = middle
    return low


def _within(t: float, degrees_of_freedom: int) -> float:
    """Return the probability of −t to t."""
    angle, is_odd = atan2(t, sqrt(degrees_of_freedom)), degrees_of_freedom % 2
    term = sin(angle) * cos(angle) ** is_odd
    total = 0.0
    for n in range(2 + is_odd, degrees_of_freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (n - 1) / n
    return (angle + total) * 2 / pi if is_odd else total
