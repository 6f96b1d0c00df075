"""Lets the system calls of a running service fail, one after the other.

strace attaches to the miner or to a worker and makes its n-th call of a kind fail, while clients
post. The process may refuse, or stop and be started again. Nothing that was acknowledged may be
missing afterwards, and clients see refusals that say what to do.
"""

import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.api.processes import parent_of
from tests.faults.auditing import conclude
from tests.faults.clients import memories, posting
from tests.faults.house import (
    MINER,
    PATIENCE_S,
    SUPERVISOR,
    WAIT_S,
    WORKER,
    House,
    house_in,
    kill,
    roles_of,
)
from tests.faults.report import Outcome, Task

CLIENTS = 4
CALLS_A_LIFE = 10  # before the chain is audited and a new one begun
WITHIN_S = 3.0  # for the call to come; some processes never make some calls
RECOVERY_S = 0.3  # between two calls, so that the service gets over the last one
AT_MOST_NTH = {MINER: 3, WORKER: 12}  # a miner makes few calls a round
FAILING = {
    MINER: {
        "openat": ("EIO", "ENOSPC", "EMFILE"),
        "pwrite64": ("EIO", "ENOSPC"),
        "fdatasync": ("EIO", "ENOSPC"),
        "fsync": ("EIO",),
        "rename": ("EIO", "ENOSPC"),
        "flock": ("EIO",),
        "ftruncate": ("EIO",),
        "unlink": ("EIO",),
        "getdents64": ("EIO",),
        "pread64": ("EIO",),
    },
    WORKER: {
        "openat": ("EIO", "ENOSPC", "EMFILE"),
        "pwrite64": ("EIO", "ENOSPC"),
        "fdatasync": ("EIO", "ENOSPC"),
        "flock": ("EIO",),
        "getdents64": ("EIO",),
        "pread64": ("EIO",),
    },
}
ALSO = {"rename": "renameat,renameat2", "unlink": "unlinkat"}  # the same under other names


class Failure(NamedTuple):
    """The n-th `call` of a process with `role` fails with `error`."""

    role: str
    call: str
    error: str
    nth: int

    def __str__(self) -> str:
        return f"{self.call} {self.nth} of a {self.role} fails with {self.error}"


def why_not() -> str:
    """Why calls cannot be made to fail here; empty if they can."""
    if shutil.which("strace") is None:
        return "there is no strace; on Debian: apt install strace"
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "this system does not allow ptrace"


def run(task: Task) -> Outcome:
    """Let `task.count` calls fail, and audit every chain."""
    outcome, failed = Outcome(skipped=why_not()), Counter[str]()
    life = 0
    while outcome.done < task.count and not outcome.skipped:
        with house_in(task.folder / f"calls-{life}") as house:
            failed += _live(house, min(CALLS_A_LIFE, task.count - outcome.done), task, outcome)
        life += 1
        task.says(f"{outcome.done} failed calls, {len(outcome.findings)} findings")
    outcome.notes.append("failed: " + ", ".join(f"{name} {n}" for name, n in failed.most_common()))
    return outcome


def _live(house: House, count: int, task: Task, outcome: Outcome) -> Counter[str]:
    failed: Counter[str] = Counter()
    remembered = memories(CLIENTS)
    house.serve()
    with posting(house.port, remembered):
        for failure in _failures(task.chance):
            before = sum(len(memory.unexpected) for memory in remembered)
            if not _fail(house, failure):
                continue
            failed[failure.call] += 1
            house.keep_serving()
            time.sleep(RECOVERY_S)
            after = [text for memory in remembered for text in memory.unexpected]
            if len(after) > before:
                outcome.add("refused", f"{failure}: {after[-1]}")
            if failed.total() == count:
                break
    house.kill_all()
    house.restart(outcome)
    for memory in remembered:
        memory.unexpected.clear()  # they are findings already, with the call that failed
    conclude(house, remembered, task.chance, outcome)
    outcome.done += failed.total()
    return failed


def _failures(chance: random.Random) -> list[Failure]:
    """Every call with each of its errors, for both roles, in random order."""
    every = [
        Failure(role, call, error, chance.randint(1, AT_MOST_NTH[role]))
        for role, failing in FAILING.items()
        for call, errors in failing.items()
        for error in errors
    ]
    return chance.sample(every * 3, 3 * len(every))


def _fail(house: House, failure: Failure) -> bool:
    """Let it happen; whether the call came in time."""
    pid = _process(house, failure.role)
    trace = house.logs / "strace.log"
    trace.unlink(missing_ok=True)
    names = ",".join(filter(None, (failure.call, ALSO.get(failure.call))))
    inject = f"inject={names}:error={failure.error}:when={failure.nth}"
    with (house.logs / "strace.err").open("ab") as errors:
        tracer = subprocess.Popen(
            [
                *("strace", "-f", "-qq", "-o", str(trace), "-p", str(pid)),
                *("-e", f"trace={names}", "-e", inject),
            ],
            stderr=errors,
        )
    try:
        return _injected(trace, tracer, pid)
    finally:
        tracer.send_signal(signal.SIGINT)  # it lets go of the process and ends
        tracer.wait()


def _process(house: House, role: str) -> int:
    """A process of `role`. The supervisor is killed rather than waited for when it pauses."""
    patience = time.monotonic() + PATIENCE_S
    while not (pids := roles_of(house.folder).get(role)):
        if time.monotonic() > patience:
            kill(roles_of(house.folder).get(SUPERVISOR, []))
            patience = time.monotonic() + WAIT_S
        house.keep_serving()
        time.sleep(0.02)
    return pids[0]


def _injected(trace: Path, tracer: "subprocess.Popen[bytes]", pid: int) -> bool:
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline and tracer.poll() is None and parent_of(pid):
        if trace.exists() and "(INJECTED)" in trace.read_text(errors="replace"):
            return True
        time.sleep(0.02)
    return trace.exists() and "(INJECTED)" in trace.read_text(errors="replace")
