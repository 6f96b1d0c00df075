"""Checks the arguments of models. A message names the argument and the value it refuses."""

import math
from collections.abc import Sequence
from itertools import islice, pairwise
from operator import le


def positive(name: str, value: float) -> float:
    """Return `value`. Raises ValueError unless it is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a positive number, is {value}")
    return value


def not_negative(name: str, value: float) -> float:
    """Return `value`. Raises ValueError unless it is finite and at least 0."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be 0 or a positive number, is {value}")
    return value


def count(name: str, value: int, least: int = 1) -> int:
    """Return `value`. Raises ValueError unless it is a whole number of at least `least`."""
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, is {value}")
    return value


def share(name: str, value: float) -> float:
    """Return `value`. Raises ValueError unless it lies between 0 and 1, both excluded."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, is {value}")
    return value


def recorded_times(
    arrivals_s: Sequence[float], others_s: Sequence[float], others: str = "services_s"
) -> None:
    """Raise ValueError unless times are finite, arrivals in order, and each has one of the others.

    others: name of `others_s` for messages.
    """
    if len(arrivals_s) != len(others_s):
        both = f"{len(arrivals_s)} and {len(others_s)}"
        raise ValueError(f"arrivals_s and {others} must be equally long, are {both}")
    for name, times_s in (("arrivals_s", arrivals_s), (others, others_s)):
        if not all(map(math.isfinite, times_s)):
            at = next(at for at, time_s in enumerate(times_s) if not math.isfinite(time_s))
            raise ValueError(f"{name} must be finite, but that of customer {at} is {times_s[at]}")
    if not all(map(le, arrivals_s, islice(arrivals_s, 1, None))):
        at = next(at for at, (a, b) in enumerate(pairwise(arrivals_s), start=1) if a > b)
        order = f"customer {at} arrives at {arrivals_s[at]} after one at {arrivals_s[at - 1]}"
        raise ValueError(f"arrivals_s must be in order, but {order}")
