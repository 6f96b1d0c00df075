"""Checks the arguments of models that people reach: by `solve`, the calculator, or the search.

A message names the argument and the value it refuses.
"""

import math


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
