"""Reads what the machine does: processor, memory, temperature, throttling, disk. Linux only.

What a machine does not tell is left out, as a virtual machine does its temperature. Units with
`ProcSubset=pid` see nothing of /proc but processes; there the processor time is that of the root
control group, and available memory is not known. Sources: proc(5), cgroups(7), and for the
throttling of a Raspberry Pi its firmware's `get_throttled`.
"""

import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_BOARD = Path("/sys/firmware/devicetree/base/model")  # names the board of a Raspberry Pi
_PROCESSOR, _STAT, _MEMORY = (Path("/proc", name) for name in ("cpuinfo", "stat", "meminfo"))
_ROOT_GROUP = Path("/sys/fs/cgroup/cpu.stat")
_TEMPERATURE = Path("/sys/class/thermal/thermal_zone0/temp")
_FREQUENCY = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq")
_THROTTLED = Path("/sys/devices/platform/soc/soc:firmware/get_throttled")
_THROTTLED_NOW = 0b1111  # too little voltage, capped frequency, throttled, soft limit of heat
_IDLE_FIELDS = (3, 4)  # of the first line of /proc/stat, after its name: idle and iowait
_BUSY_FIELDS = 8  # from user to steal; what guests use is in user
_BUSY_MS_FIELD = 9  # of a device's stat: how long the disk was at work


class Reading(NamedTuple):
    """A number that the machine tells. is_total: it only grows."""

    name: str
    what: str
    value: float
    is_total: bool = False


def processor() -> str:
    """Return the processor's name, after that of the board if it has one."""
    named, board = None, ""
    with suppress(OSError):
        text = _PROCESSOR.read_text("utf-8", "replace")
        named = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    with suppress(OSError):
        board = f"{_BOARD.read_text('utf-8', 'replace').rstrip(chr(0))}, "
    return board + (named[1] if named else platform.machine())


def readings(folder: Path) -> Iterator[Reading]:
    """Yield what the machine tells now. folder: on the disk that is meant."""
    for name, what, is_total, read in _READ:
        with suppress(OSError, ValueError, LookupError):
            yield Reading(name, what, read(folder), is_total)


def _busy_s(_: Path) -> float:
    if not _STAT.exists():
        return int(_ROOT_GROUP.read_text("ascii").split()[1]) / 1e6  # usage_usec, then its number
    line = _STAT.read_text("ascii").splitlines()[0]
    ticks = [int(field) for field in line.split()[1 : _BUSY_FIELDS + 1]]
    idle = sum(ticks[field] for field in _IDLE_FIELDS)
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")


def _available_bytes(_: Path) -> float:
    return 1024.0 * int(_MEMORY.read_text("ascii").partition("MemAvailable:")[2].split()[0])


def _disk_busy_s(folder: Path) -> float:
    device = folder.stat().st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    stat = Path(f"/sys/dev/block/{numbers}/stat").read_text("ascii")
    return int(stat.split()[_BUSY_MS_FIELD]) / 1000


_READ: tuple[tuple[str, str, bool, Callable[[Path], float]], ...] = (
    ("cores", "Cores that this process may use.", False, lambda _: len(os.sched_getaffinity(0))),
    ("cpu_seconds", "Processor time that all cores have worked.", True, _busy_s),
    (
        "memory_bytes",
        "Memory of the machine.",
        False,
        lambda _: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    ),
    ("memory_available_bytes", "Memory that programs could still have.", False, _available_bytes),
    (
        "temperature_celsius",
        "Temperature of the processor.",
        False,
        lambda _: int(_TEMPERATURE.read_text("ascii")) / 1000,
    ),
    (
        "frequency_hertz",
        "Present frequency of the first core.",
        False,
        lambda _: 1000.0 * int(_FREQUENCY.read_text("ascii")),
    ),
    (
        "throttled",
        "1 while a Raspberry Pi is slowed down by heat or by too little voltage, else 0.",
        False,
        lambda _: bool(int(_THROTTLED.read_text("ascii"), 16) & _THROTTLED_NOW),
    ),
    ("disk_busy_seconds", "Time that the chain's disk was at work.", True, _disk_busy_s),
)
