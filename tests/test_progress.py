"""The line that tells how far long work is: whole words, in a terminal and in a log."""

import io
import sys
import time

import pytest

from backend.base.progress import BEGIN_ANEW, Line, counting, left


class Screen(io.StringIO):
    """Standard error as a terminal, or as a file."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, its only element."""
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    return now_s


def screen(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, kind: str = "xterm") -> Screen:
    screen = Screen(is_terminal=is_terminal)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_a_terminal_shows_what_is_done_of_what_there_is(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    shown = screen(monkeypatch, is_terminal=True)
    with counting("verifying", "block") as show:
        for done in range(11):
            show(done, 10)
            clock[0] += 1
    lines = shown.getvalue().split(BEGIN_ANEW)[1:]
    assert lines[:2] == ["verifying: 0 of 10 blocks", "verifying: 1 of 10 blocks, 9 s left"]
    assert lines[-1] == "verifying: 10 of 10 blocks\n"
    assert len(lines) == 11


def test_one_thing_is_one_and_nothing_to_do_shows_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = screen(monkeypatch, is_terminal=True)
    with counting("making the index", "block") as show:
        show(0, 0)
    assert shown.getvalue() == ""
    with counting("making the index", "block") as show:
        show(1, 1)
    assert shown.getvalue() == f"{BEGIN_ANEW}making the index: 1 of 1 block\n"


@pytest.mark.parametrize(("is_terminal", "kind"), [(False, "xterm"), (True, "dumb")])
def test_a_log_gets_whole_lines_and_few_of_them(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], is_terminal: bool, kind: str
) -> None:
    log = screen(monkeypatch, is_terminal=is_terminal, kind=kind)
    with counting("verifying", "block") as show:
        show(1, 1)
    assert log.getvalue() == ""
    line = Line(in_a_log=True)
    for second in range(25):
        clock[0] = second
        line.show(f"importing: {second}")
    line.say("left out: a row")
    line.show("importing: all", at_once=True)
    line.show("importing: all", at_once=True)
    line.close()
    lines = log.getvalue().splitlines()
    assert lines == ["importing: 10", "importing: 20", "left out: a row", "importing: all"]


def test_a_line_that_stays_stands_above_the_one_that_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = screen(monkeypatch, is_terminal=True)
    line = Line(in_a_log=True)
    line.say("first")
    line.show("half", at_once=True)
    line.say("left out: a row")
    line.close()
    after = f"{BEGIN_ANEW}left out: a row\n{BEGIN_ANEW}half\n"
    assert shown.getvalue() == f"first\n{BEGIN_ANEW}half{after}"


def test_of_a_long_line_a_terminal_shows_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch, is_terminal=True)
    monkeypatch.setenv("COLUMNS", "31")
    Line(in_a_log=True).show("checking On_Time_2008_1.zip: 42%, 9 rows", at_once=True)
    assert shown.getvalue() == f"{BEGIN_ANEW}checking O…_1.zip: 42%, 9 rows"


@pytest.mark.parametrize(
    ("share", "elapsed_s", "message"),
    [
        (0.5, 10, ", 10 s left"),
        (0.5, 89, ", 89 s left"),
        (0.99, 10, ", 1 s left"),
        (0.9, 10, ", 1 s left"),
        (0.1, 60, ", 9 min left"),
        (0.5, 0.5, ""),  # too early
        (0.01, 60, ""),
        (1.0, 60, ""),
    ],
)
def test_the_time_that_is_left_is_told_when_it_is_known(
    share: float, elapsed_s: float, message: str
) -> None:
    assert left(share, elapsed_s) == message
