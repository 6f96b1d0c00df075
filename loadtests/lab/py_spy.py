"""Samples a running Python process with py-spy: flame graphs and collapsed stacks.

py-spy reads the memory of the process from outside, so the process runs its usual code. Each sample
stops the process for a moment, so times must not be measured meanwhile. py-spy needs the right to
trace other processes (ptrace).
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from loadtests.processes import PROJECT, ProgramFailed, plain_environment

_SAMPLES = re.compile(r"Samples: (\d+) Errors: (\d+)")
_REFUSED = ("permission denied", "operation not permitted", "eperm", "ptrace")
_PATIENCE = 20  # times the duration, because a busy machine delays py-spy
_LEAST_PATIENCE_S = 60.0
PERMISSION = (
    "py-spy may not trace the process {pid}. Run the lab as root; or allow tracing until the next "
    "start of the machine: sudo sysctl kernel.yama.ptrace_scope=0; or start the container with "
    "--cap-add SYS_PTRACE"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """The size of a recording: attempts to sample, recorded stacks, and attempts that failed."""

    looks: int
    samples: int
    errors: int


def record(
    pid: int, path: Path, *, form: str, rate_hz: int, duration_s: float, threads: str = "running"
) -> Recording:
    """Sample a process for a time and write the stacks to `path`.

    form: `raw` (collapsed stacks) or `flamegraph` (SVG). threads: `running`, those that the kernel
    runs; `lock`, the one that holds Python's lock; `all`. Raises ProgramFailed if py-spy is missing
    or may not trace, or the process has ended.
    """
    which = {"running": [], "lock": ["--gil"], "all": ["--idle"]}[threads]
    options = ["--pid", str(pid), "--rate", str(rate_hz), "--duration", str(round(duration_s))]
    command = [_program(), "record", *options, "--format", form, "--output", str(path), *which]
    try:
        done = subprocess.run(  # noqa: S603  our own command
            command,
            cwd=PROJECT,
            env=plain_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=max(_LEAST_PATIENCE_S, _PATIENCE * duration_s),
        )
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"py-spy did not end; it was to run for {duration_s:g} s") from None
    said = done.stdout + done.stderr
    found = _SAMPLES.search(said)
    if done.returncode != 0 or found is None or not path.exists():
        raise ProgramFailed(_why(pid, said))
    return Recording(rate_hz * round(duration_s), int(found[1]), int(found[2]))


def _program() -> str:
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise ProgramFailed("py-spy is missing; scripts/lab installs it")
    return found


def _why(pid: int, said: str) -> str:
    if any(word in said.lower() for word in _REFUSED):
        return PERMISSION.format(pid=pid)
    return f"py-spy could not sample the process {pid}: {said.strip()[-300:]}"
