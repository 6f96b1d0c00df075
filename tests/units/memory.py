"""Control groups with a limit of memory and of processes, in both versions of Linux's interface."""

import os
import signal
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
REMOVED_WITHIN_S = 10.0


class ControlGroup:
    """A group of processes that have at most so much memory, page cache included, together."""

    def __init__(self, name: str, memory_bytes: int, most_tasks: int) -> None:
        self._is_unified = (GROUPS / "cgroup.controllers").exists()
        kinds = [""] if self._is_unified else ["memory", "pids"]
        self._folders = [GROUPS / kind / name for kind in kinds]
        for folder in self._folders:
            folder.mkdir()
        memory, tasks = self._folders[0], self._folders[-1]
        limit = "memory.max" if self._is_unified else "memory.limit_in_bytes"
        (memory / limit).write_text(str(memory_bytes))
        (tasks / "pids.max").write_text(str(most_tasks))

    def files_to_join(self) -> list[str]:
        """The files to which a process writes 0 to be in the group."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def pids(self) -> list[int]:
        """The processes in the group."""
        return [int(pid) for pid in (self._folders[0] / "cgroup.procs").read_text().split()]

    def kills(self) -> int:
        """Returns how many processes were killed because the group had no more memory."""
        name = "memory.events" if self._is_unified else "memory.oom_control"
        lines = (self._folders[0] / name).read_text().splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])

    def remove(self) -> None:
        """Kill what is left in the group, and remove it."""
        deadline = time.monotonic() + REMOVED_WITHIN_S
        while pids := self.pids():
            assert time.monotonic() < deadline, f"processes {pids} do not end"
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for folder in self._folders:
            _remove(folder, deadline)


def _remove(folder: Path, deadline: float) -> None:
    while True:
        try:
            folder.rmdir()
        except OSError:  # a process that has ended is still on its way out
            assert time.monotonic() < deadline, f"{folder} cannot be removed"
            time.sleep(0.01)
        else:
            return


@cache
def reason_without_groups() -> str:
    """Why no group with a limit of memory can be made here; "" if one can."""
    if os.geteuid() != 0:
        return "limits of memory need root"
    controllers = GROUPS / "cgroup.controllers"
    try:
        if controllers.exists():
            (GROUPS / "cgroup.subtree_control").write_text("+memory +pids")
        elif not all((GROUPS / kind / "cgroup.procs").exists() for kind in ("memory", "pids")):
            return f"no control groups for memory and processes are mounted at {GROUPS}"
        ControlGroup(f"flightchain-test-{os.getpid()}-probe", 2**24, 10).remove()
    except OSError as error:
        return f"this machine lets nobody make control groups: {error}"
    return ""
