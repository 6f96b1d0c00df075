"""Tells the time of day in UTC milliseconds, in one place for the whole backend."""

import time

EARLIEST_MS = 1_577_836_800_000  # 2020-01-01 UTC; a clock that says an earlier time is not set


def now_ms() -> int:
    """Return UTC milliseconds since 1970. A clock may be set back: for order, take the larger."""
    return time.time_ns() // 1_000_000
