"""What tells that a process hangs: given clocks, and real processes that are stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.base.errors import FlightchainError
from backend.base.files import FileLock
from backend.sealing.miner_status import (
    LOCK_NAME,
    OVERDUE_S,
    SEALING_S,
    STATUS_NAME,
    Announcer,
    miner_status,
    why_no_miner,
)
from backend.service.hang_detection import (
    Watch,
    overdue_miner,
    stopped,
)
from backend.service.supervisor import Child
from tests.api.processes import until

PID = 4321


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- patience ------------------------------------------------------------------------------------


def test_a_symptom_is_named_when_it_has_lasted_for_so_many_seconds_of_looking(clock: Clock) -> None:
    ill: list[str] = []
    watch = Watch(lambda pid: ill[-1] if ill else "", 2.0, clock)
    verdicts = []
    for look in range(20):
        if look == 10:
            ill.append("it hangs")
        verdicts.append(watch.verdict(PID))
        clock.now_s += 0.5
    assert verdicts == [""] * 13 + ["it hangs"] * 7


def test_a_symptom_that_goes_away_is_forgotten(clock: Clock) -> None:
    ill = [True]
    watch = Watch(lambda pid: "it hangs" if ill[0] else "", 2.0, clock)
    for look in range(40):
        ill[0] = look % 4 != 3
        assert watch.verdict(PID) == ""
        clock.now_s += 0.5


def test_time_in_which_nobody_looked_does_not_count(clock: Clock) -> None:
    """As when a container is paused with all that is in it."""
    watch = Watch(lambda pid: "it hangs", 5.0, clock)
    for _ in range(4):
        assert watch.verdict(PID) == ""
        clock.now_s += 3600
    clock.now_s += 3600
    assert watch.verdict(PID) == ""


def test_another_process_is_looked_at_anew(clock: Clock) -> None:
    watch = Watch(lambda pid: "it hangs", 2.0, clock)
    for pid in range(1, 50):
        assert watch.verdict(pid) == ""
        clock.now_s += 0.9
        assert watch.verdict(pid) == ""
        clock.now_s += 0.9


def test_a_process_that_has_died_is_looked_at_too() -> None:
    """If the disk is gone, a miner ends at once, each time that it is started."""
    looked_at = []

    def symptom(pid: int) -> str:
        looked_at.append(pid)
        raise FlightchainError("the disk is gone")

    child = Child("this", "this", [], lambda line: None, [Watch(symptom, 2.0)])
    child.start()
    assert child._process is not None
    child._process.wait()
    with pytest.raises(FlightchainError, match="the disk is gone"):
        child.look()
    assert looked_at == [child._process.pid]


# --- stopped processes ---------------------------------------------------------------------------


def test_a_stopped_process_is_told_from_a_running_one() -> None:
    symptom = stopped()._symptom
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as sleeper:
        assert symptom(sleeper.pid) == ""
        sleeper.send_signal(signal.SIGSTOP)
        until(lambda: symptom(sleeper.pid) == "it was stopped")
        sleeper.send_signal(signal.SIGCONT)
        until(lambda: symptom(sleeper.pid) == "")
        sleeper.kill()
    assert symptom(2**22 + 1) == ""  # there is none


# --- the miner -----------------------------------------------------------------------------------


@pytest.fixture
def mined(tmp_path: Path) -> Iterator[Path]:
    with FileLock(tmp_path / LOCK_NAME):
        yield tmp_path


def say(folder: Path, due_s: float) -> None:
    status = {"next_block_at": 1, "pid": os.getpid(), "due_s": due_s}
    (folder / STATUS_NAME).write_text(json.dumps(status))


def test_a_miner_that_keeps_silent_is_not_ready_within_five_seconds(mined: Path) -> None:
    now_s = time.monotonic()
    say(mined, now_s)
    assert why_no_miner(mined) == ""
    assert OVERDUE_S < 5
    say(mined, now_s - 5)
    assert f"the miner hangs: process {os.getpid()}" in why_no_miner(mined)


def test_a_miner_is_overdue_by_its_own_word_alone(mined: Path) -> None:
    symptom = overdue_miner(mined)._symptom
    assert symptom(os.getpid()) == ""  # it has not said anything yet
    say(mined, time.monotonic() - 60)
    assert symptom(os.getpid()) != ""
    assert symptom(os.getpid() + 1) == ""  # this one has just been started
    say(mined, time.monotonic() + 1)
    assert symptom(os.getpid()) == ""


def test_a_miner_that_has_not_spoken_yet_is_told_from_none(mined: Path) -> None:
    assert "the miner is starting, or cannot write miner.json" in why_no_miner(mined)
    (mined / LOCK_NAME).unlink()
    assert "no miner is running" in why_no_miner(mined)


def test_what_a_dead_miner_or_an_older_release_said_is_not_believed(mined: Path) -> None:
    (mined / STATUS_NAME).write_text('{"pid": 1, "next_block_at": 5}')
    assert miner_status(mined) is None
    say(mined, time.monotonic() - 60)
    assert miner_status(mined) is not None
    (mined / LOCK_NAME).unlink()
    assert miner_status(mined) is None


def test_a_miner_at_work_says_so_again_before_its_word_is_over(
    mined: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.sealing.miner_status.time.monotonic", clock)
    announcer = Announcer(mined, print)
    written, before = 0, 0
    for _ in range(3000):
        announcer.working()
        status = miner_status(mined)
        assert status is not None
        assert clock.now_s < status.due_s <= clock.now_s + SEALING_S
        now = (mined / STATUS_NAME).stat().st_ino
        written, before = written + (now != before), now
        clock.now_s += 0.1
    assert written <= 300 / (SEALING_S / 2) + 1


def test_a_word_that_cannot_be_renewed_is_taken_back(mined: Path) -> None:
    lines: list[str] = []
    announcer = Announcer(mined, lines.append)
    announcer.next_round(60)
    for times in (1, 2):
        (mined / f"{STATUS_NAME}.{os.getpid()}.tmp").mkdir()
        for _ in range(3):
            announcer.next_round(60)
        assert "mining continues" in lines[-1]
        assert len(lines) == times  # not at every try, while a disk is full
        assert miner_status(mined) is None
        (mined / f"{STATUS_NAME}.{os.getpid()}.tmp").rmdir()
        announcer.working()
        assert miner_status(mined) is not None
    (mined / STATUS_NAME).unlink()
    (mined / STATUS_NAME).mkdir()  # as on a disk that was unplugged, it cannot be removed either
    for _ in range(3):
        announcer.next_round(60)
    assert len(lines) == 3
