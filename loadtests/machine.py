"""Describes the machine of a measurement: processor, memory, kernel, file system. Linux only."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CPUINFO = Path("/proc/cpuinfo")
_BOARD = Path("/proc/device-tree/model")  # names the board of a Pi
_MOUNTS = Path("/proc/self/mounts")


def description(folder: Path) -> dict[str, Any]:
    """Facts about the machine, and the file system that `folder` lies on."""
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "ram_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "file_system": file_system(folder),
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
    }


def cpu_model() -> str:
    """The processor's name, with that of the board if it has one."""
    lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(named, platform.processor() or platform.machine())
    if _BOARD.exists():
        return f"{_BOARD.read_text(encoding='utf-8').rstrip(chr(0))}, {processor}"
    return processor


def file_system(folder: Path, mounts: str | None = None) -> str:
    """Type and device of the mount that `folder` lies on; `mounts` as in /proc/self/mounts."""
    text = _MOUNTS.read_text(encoding="utf-8") if mounts is None else mounts
    folder = folder.resolve()
    found, depth = "unknown", 0
    for line in text.splitlines():
        device, place, kind = line.split()[:3]
        place_depth = len(Path(place).parts)
        if place_depth >= depth and folder.is_relative_to(place):
            found, depth = f"{kind} on {device}", place_depth
    return found


@contextmanager
def at_most_cores(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile run on no more than `count` cores."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
