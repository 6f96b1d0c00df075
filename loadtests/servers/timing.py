"""Writes and reads headers in which a server reports the time that a request took.

The service itself, too, sends `Server-Timing: total;dur=MS` (W3C), and in the lab when the handler
began, on CLOCK_MONOTONIC, the id of the running kernel, because that clock means nothing on another
machine, and which process answered.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

SERVER_TIMING = "Server-Timing"
START = "X-Service-Start"
WORKER = "X-Worker"
BOOT = "X-Boot-Id"

_ENTRY = re.compile(r"\s*(\w+)((?:;[^,\"]*(?:\"[^\"]*\")?)*)")
_DURATION = re.compile(r";\s*dur=([0-9.]+)")


def boot_id() -> str:
    """Return the id of the running kernel; processes with the same one share their clock."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


_HERE = boot_id()


@dataclass(frozen=True, slots=True)
class Reported:
    """Holds the times that a server reported. start_s: on CLOCK_MONOTONIC, None if elsewhere."""

    start_s: float | None
    service_s: float | None
    worker: str


NOTHING_REPORTED = Reported(None, None, "")


def durations_s(server_timing: str) -> dict[str, float]:
    """Return the durations (s) in a Server-Timing header, by the names of their entries."""
    durations = ((name, _DURATION.search(more)) for name, more in _ENTRY.findall(server_timing))
    return {name: float(duration[1]) / 1e3 for name, duration in durations if duration}


def headers(start_s: float) -> list[tuple[str, str]]:
    """Return the headers for the answer of a handler that began at `start_s` (CLOCK_MONOTONIC)."""
    return [
        (SERVER_TIMING, f"total;dur={(monotonic() - start_s) * 1e3:.6f}"),
        (START, f"{start_s:.9f}"),
        (WORKER, str(os.getpid())),
        (BOOT, _HERE),
    ]


def reported(by_name: Mapping[str, str]) -> Reported:
    """Return the times in the headers of an answer. by_name: headers by names in lower case."""
    start = by_name.get(START.lower()) if by_name.get(BOOT.lower()) == _HERE else None
    return Reported(
        float(start) if start else None,
        durations_s(by_name.get(SERVER_TIMING.lower(), "")).get("total"),
        by_name.get(WORKER.lower(), ""),
    )
