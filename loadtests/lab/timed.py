"""Times programs as whole processes, as the shell's `time` does. Linux only."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

from loadtests.machine import moment
from loadtests.processes import PROJECT, ProgramFailed, failure, plain_environment


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
    """Run a program of ours to its end. log: file for its output. Raises ProgramFailed.

    No other child of this process may end meanwhile, whose time would count as the program's.
    """
    with log.open("ab") as stream:
        before, used = moment(None), getrusage(RUSAGE_CHILDREN)
        start_s = perf_counter()
        ended = subprocess.run(  # noqa: S603  our own command
            command,
            cwd=PROJECT,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            check=False,
        )
        wall_s = perf_counter() - start_s
        after = getrusage(RUSAGE_CHILDREN)
        foreign_cpu = before.until(moment(None)).foreign_cores
    if ended.returncode != 0:
        raise ProgramFailed(failure(command, ended.returncode, log))
    user_s, sys_s = after.ru_utime - used.ru_utime, after.ru_stime - used.ru_stime
    return Timed(wall_s, user_s, sys_s, foreign_cpu)
