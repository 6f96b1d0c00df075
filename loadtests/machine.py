"""Describes the machine of a measurement: processor, memory, kernel and file system. Linux only.

`loadtests.machine_samples` says who used the processor.
"""

import os
import platform
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backend.base.machine import processor
from loadtests.processes import PROJECT


def description(folder: Path) -> dict[str, Any]:
    """Return facts about the machine, and the file system that `folder` lies on."""
    return {
        "cpu": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "ram_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6,
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "file_system": file_system(folder),
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
    }


def commit() -> str | None:
    """Return the commit that is measured; None without git."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "HEAD"],  # noqa: S607  the git that is installed
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return answer.stdout.strip() or None


def file_system(folder: Path, mounts: str | None = None) -> str:
    """Return type and device of the mount of `folder`; `mounts` as in /proc/self/mounts."""
    lines = (mounts or Path("/proc/self/mounts").read_text("utf-8")).splitlines()
    rows = (line.split()[:3] for line in lines)
    above = [row for row in rows if folder.resolve().is_relative_to(row[1])]
    if not above:
        return "unknown"
    # The deepest, and of several at one place the last, which hides the others.
    device, _, kind = max(reversed(above), key=lambda row: len(Path(row[1]).parts))
    return f"{kind} on {device}"


@contextmanager
def at_most_cores(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile run on no more than `count` cores."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
