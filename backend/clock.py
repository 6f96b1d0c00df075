"""The time of day, in one place: UTC milliseconds."""

import time

EARLIEST_MS = 1_577_836_800_000  # 2020-01-01 UTC: a clock that says less is not set


def now_ms() -> int:
    """UTC milliseconds since 1970. It may jump; whoever needs order takes the larger of two."""
    return time.time_ns() // 1_000_000
