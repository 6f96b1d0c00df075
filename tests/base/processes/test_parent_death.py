"""A process that ends with its parent, also one that a process with threads has started."""

import ctypes
import signal
import subprocess
import sys
import time

import pytest

from backend.base.processes.parent_death import dying_with_parent

CHILD_S = 60
PARENT = f"""
import subprocess, sys, threading
from backend.base.processes.parent_death import dying_with_parent

threading.Thread(target=threading.Event().wait, daemon=True).start()
sleep = [sys.executable, "-c", "import time; time.sleep({CHILD_S})"]
child = subprocess.Popen(sleep, preexec_fn=dying_with_parent(15))
print("started", flush=True)
child.wait()
"""


def test_a_child_ends_when_its_parent_is_killed() -> None:
    begun_s = time.monotonic()
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout as output:
        assert output.readline() == b"started\n"
        parent.send_signal(signal.SIGKILL)
        assert output.read() == b""  # the child had it open, too
    assert parent.wait() == -signal.SIGKILL
    assert time.monotonic() - begun_s < CHILD_S


def test_a_new_process_loads_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may hold the lock of the linker at the fork, which nobody releases then."""
    prepare = dying_with_parent(signal.SIGTERM)
    monkeypatch.setattr(ctypes, "CDLL", None)
    subprocess.run(["/bin/true"], preexec_fn=prepare, check=True)
