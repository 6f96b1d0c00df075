"""Times programs as whole processes, as the shell's `time` does. Linux only."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from loadtests.generation.samples import core_ticks
from loadtests.processes import PROJECT, ProgramFailed, failure, plain_environment

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds that a process took from start to end: real, user and sys of `time`.

    foreign_cpu: processor time of other programs meanwhile and of the hypervisor, in cores.
    """

    wall_s: float
    user_s: float
    sys_s: float
    foreign_cpu: float


def timed(command: Sequence[str], log: Path) -> Timed:
    """Run a program of ours to its end. log: file for its output. Raises ProgramFailed."""
    with log.open("ab") as stream:
        busy_s, start_s = _busy_s(), perf_counter()
        process = subprocess.Popen(  # noqa: S603  our own command
            list(command),
            cwd=PROJECT,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
        )
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall_s = perf_counter() - start_s
        busy_s = _busy_s() - busy_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ProgramFailed(failure(command, process.returncode, log))
    foreign_s = busy_s - used.ru_utime - used.ru_stime
    foreign_cpu = max(0.0, foreign_s / wall_s)
    return Timed(wall_s, used.ru_utime, used.ru_stime, foreign_cpu)


def _busy_s() -> float:
    """Processor time that all cores have spent so far."""
    cores = core_ticks(Path("/proc/stat").read_text("ascii"))
    return sum(busy for busy, _ in cores) / _TICKS_PER_S
