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
    """The id of the running kernel. Processes with the same id share their monotonic clock."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


_HERE = boot_id()


@dataclass(frozen=True, slots=True)
class Told:
    """The times that a server reported. start_s: on CLOCK_MONOTONIC, None for another machine."""

    start_s: float | None
    service_s: float | None
    worker: str


NOTHING_TOLD = Told(None, None, "")


class Entry(NamedTuple):
    """An entry of Server-Timing. duration_s: None if it has none. description: "" if none."""

    name: str
    duration_s: float | None
    description: str


def entries(server_timing: str) -> list[Entry]:
    """The entries of a Server-Timing header, in its order."""
    found = []
    for name, rest in _ENTRY.findall(server_timing):
        duration, description = _DURATION.search(rest), _DESCRIPTION.search(rest)
        duration_s = float(duration[1]) / 1e3 if duration else None
        found.append(Entry(name, duration_s, description[1] if description else ""))
    return found


def durations_s(server_timing: str) -> dict[str, float]:
    """The durations in a Server-Timing header, by the names of their entries."""
    return {name: time_s for name, time_s, _ in entries(server_timing) if time_s is not None}


def headers(start_s: float) -> list[tuple[str, str]]:
    """The headers for the answer of a handler that began at `start_s` (CLOCK_MONOTONIC)."""
    return [
        (SERVER_TIMING, f"total;dur={(monotonic() - start_s) * 1e3:.6f}"),
        (START, f"{start_s:.9f}"),
        (WORKER, str(os.getpid())),
        (BOOT, _HERE),
    ]


def told(found: Mapping[str, str]) -> Told:
    """The times in the headers of an answer. found: headers by names in lower case."""
    start = found.get(START.lower()) if found.get(BOOT.lower()) == _HERE else None
    total = _TOTAL.search(found.get(SERVER_TIMING.lower(), ""))
    return Told(
        float(start) if start else None,
        float(total[1]) / 1e3 if total else None,
        found.get(WORKER.lower(), ""),
    )
