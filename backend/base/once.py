"""Makes what takes long when it is first asked for, and only once."""

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import TypeVar

Made = TypeVar("Made")


def once(make: Callable[[], Made]) -> Callable[[], Made]:
    """Return what gives the result of `make`, which one thread calls however many ask at first."""
    known, lock = cache(make), Lock()

    @wraps(make)
    def made() -> Made:
        with lock:
            return known()

    return made
