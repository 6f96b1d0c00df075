"""Tells the time of day in UTC milliseconds, in one place for the whole backend."""

import time


def now_ms() -> int:
    """Return UTC milliseconds since 1970. A clock may be set back: for order, take the larger."""
    return time.time_ns() // 1_000_000
