"""What a server tells of the time a request took in it, in headers; both sides of them.

`Server-Timing: total;dur=MS` (W3C) is told by the service itself, too. The rest is told by the
lab's own servers: when the handler began, on CLOCK_MONOTONIC, which process it was, and on which
running kernel, because that clock means nothing on another machine.
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
_DESCRIPTION = re.compile(r';\s*desc="([^"]*)"')
_TOTAL = re.compile(r"(?:^|,)\s*total\s*;(?:[^,]*;)?\s*dur=([0-9.]+)")


def boot_id() -> str:
    """What names the running kernel: equal for processes whose monotonic clocks are the same."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


_HERE = boot_id()


@dataclass(frozen=True, slots=True)
class Told:
    """What a server told. start_s: on CLOCK_MONOTONIC of this machine, None if of another."""

    start_s: float | None
    service_s: float | None
    worker: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of Server-Timing. duration_s: None if it has none. description: empty likewise."""

    name: str
    duration_s: float | None
    description: str


def entries(server_timing: str) -> list[Entry]:
    """The entries of a Server-Timing header, in its order."""
    return [_entry(found) for found in _ENTRY.finditer(server_timing)]


def _entry(found: re.Match[str]) -> Entry:
    name, rest = found.groups()
    duration, description = _DURATION.search(rest), _DESCRIPTION.search(rest)
    return Entry(
        name,
        float(duration[1]) / 1e3 if duration else None,
        description[1] if description else "",
    )


def headers(start_s: float) -> list[tuple[str, str]]:
    """To be sent with the answer of a handler that began at `start_s` (time.monotonic)."""
    return [
        (SERVER_TIMING, f"total;dur={(monotonic() - start_s) * 1e3:.6f}"),
        (START, f"{start_s:.9f}"),
        (WORKER, str(os.getpid())),
        (BOOT, _HERE),
    ]


def told(found: Mapping[str, str]) -> Told:
    """What the headers of an answer tell; `found` by names in lower case."""
    start = found.get(START.lower()) if found.get(BOOT.lower()) == _HERE else None
    total = _TOTAL.search(found.get(SERVER_TIMING.lower(), ""))
    return Told(
        float(start) if start else None,
        float(total[1]) / 1e3 if total else None,
        found.get(WORKER.lower(), ""),
    )
