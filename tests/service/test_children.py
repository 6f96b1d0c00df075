"""Children of the supervisor: when one that dies is started again, and how all are stopped."""

import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from backend.service import supervisor
from backend.service.supervisor import Child
from tests.api.worlds import settings_for


def test_pauses_grow_while_a_process_dies_at_once_and_are_short_again_after_it_has_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, started, lines = [0.0], list[float](), list[str]()

    def dead(*_: object, **more: object) -> SimpleNamespace:
        started.append(now_s[0])
        return SimpleNamespace(pid=2**22 + 1, poll=lambda: 7)

    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(subprocess, "Popen", dead)
    child = Child("the miner", "backend", ["mine"], lines.append)
    child.start()
    pauses_s = []
    for lived_s in (0, 0, 29, 31, *[0] * 7):
        now_s[0] += lived_s
        died_s, count = now_s[0], len(started)
        child.look()
        while len(started) == count:
            now_s[0] += 0.25
            child.look()
        pauses_s.append(started[-1] - died_s)
    assert pauses_s == [0.5, 1, 2, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert lines[1] == "the miner ended with status 7; starting it again in 1 s"


def test_one_that_does_not_stop_in_time_is_killed() -> None:
    lines = list[str]()
    child = Child("the miner", "backend", ["mine"], lines.append)
    child._command = ["sleep", "60"]
    child.start()
    assert child._process is not None
    child.wait(until=0)
    assert child._process.returncode == -signal.SIGKILL
    assert lines == ["the miner did not stop within 30 s and was killed"]


def test_all_stop_one_after_the_other_pages_first_and_the_miner_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is posted to a web server that stops may still wait for a block."""
    stopped = list[str]()

    class Stopping(Child):
        def ask_to_stop(self) -> None:
            stopped.append(f"{self.name} is asked")

        def wait(self, until: float) -> None:
            stopped.append(f"{self.name} is waited for")

    monkeypatch.setattr(supervisor, "Child", Stopping)
    monkeypatch.setattr(supervisor, "_keep_running", lambda *_, **more: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    supervisor._supervise(settings_for(folder), lambda line: None, frontend=True)
    assert stopped == [
        f"{name} is {what}"
        for name in ("the frontend", "the web server", "the miner")
        for what in ("asked", "waited for")
    ]
