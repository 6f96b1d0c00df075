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
from typing import NamedTuple

SERVER_TIMING = "Server-Timing"
START = "X-Service-Start"
WORKER = "X-Worker"
BOOT = "X-Boot-Id"

_ENTRY = re.compile(r"\s*(\w+)((?:;[^,\"]*(?:\"[^\"]*\")?)*)")
_DURATION = re.compile(r";\s*dur=([0-9.]+)")
_DESCRIPTION = re.compile(r';\s*desc="([^"]*)"')
_TOTAL = re.compile(r"(?:^|,)\s*total\s*;(?:[^,]*;)?\s*dur=([0-9.]+)")


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


class Entry(NamedTuple):
    """Holds an entry of Server-Timing. duration_s is None, description "", without one."""

    name: str
    duration_s: float | None
    description: str


def entries(server_timing: str) -> list[Entry]:
    """Return the entries of a Server-Timing header, in its order."""
    parsed = []
    for name, parameters in _ENTRY.findall(server_timing):
        duration, description = _DURATION.search(parameters), _DESCRIPTION.search(parameters)
        duration_s = float(duration[1]) / 1e3 if duration else None
        parsed.append(Entry(name, duration_s, description[1] if description else ""))
    return parsed


def durations_s(server_timing: str) -> dict[str, float]:
    """Return the durations (s) in a Server-Timing header, by the names of their entries."""
    return {name: time_s for name, time_s, _ in entries(server_timing) if time_s is not None}


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
    total = _TOTAL.search(by_name.get(SERVER_TIMING.lower(), ""))
    return Reported(
        float(start) if start else None,
        float(total[1]) / 1e3 if total else None,
        by_name.get(WORKER.lower(), ""),
    )
