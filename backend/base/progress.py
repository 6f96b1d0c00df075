"""Shows how far long work in a terminal is, as one line of words that is written over.

    importing flights.csv: 52 %, 20,000 flights, 12,736 a second, 2 s left

Where standard error is no terminal, or a dumb one that writes nothing over, such a line is written
only now and then, or not at all.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

from backend.base.words import counted

EVERY_S = 0.2
EVERY_S_IN_A_LOG = 10.0
LEAST_TOLD_S, LEAST_TOLD_SHARE = 1.0, 0.05  # before, how much time is left would be a guess
BEGIN_ANEW = "\r\x1b[K"  # to the beginning of the line, which is emptied

Progress = Callable[[int, int], None]  # how much is done, and how much there is to do


def no_progress(done: int, to_do: int) -> None:
    """Do nothing: nobody watches the progress."""


class Line:
    """A line on standard error. It comes with the first `show`, and is ended by `close`."""

    def __init__(self, *, in_a_log: bool) -> None:
        """in_a_log: whether it is written if standard error is no terminal, too."""
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._is_shown = self._is_terminal or in_a_log
        self._every_s = EVERY_S if self._is_terminal else EVERY_S_IN_A_LOG
        self._text = ""
        self._began_s = self._shown_s = time.monotonic()

    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Write `text` over what is shown, unless that was done a moment ago."""
        now_s = time.monotonic()
        is_due = at_once or now_s - self._shown_s >= self._every_s
        if self._is_shown and is_due and text != self._text:
            self._shown_s, self._text = now_s, text
            self._write()

    def say(self, text: str) -> None:
        """Write a line that stays, above this one."""
        if self._is_terminal and self._text:
            sys.stderr.write(BEGIN_ANEW)
        print(text, file=sys.stderr, flush=True)
        if self._is_terminal and self._text:
            self._write()

    def close(self) -> None:
        if self._is_terminal and self._text:
            print(file=sys.stderr, flush=True)

    def _write(self) -> None:
        if self._is_terminal:
            width = get_terminal_size().columns - 1  # a longer one would not be written over
            sys.stderr.write(BEGIN_ANEW + _fitted(self._text, width))
        else:
            sys.stderr.write(f"{self._text}\n")
        sys.stderr.flush()


def _fitted(text: str, width: int) -> str:
    """Leave out the middle of a text that is too long: the name of a file, with figures behind."""
    if len(text) <= width:
        return text
    begins = width // 3
    return f"{text[:begins]}…{text[len(text) - (width - 1 - begins) :]}"


@contextmanager
def counting(what: str, unit: str) -> Iterator[Progress]:
    """Show how many of a number of things are done, in a terminal.

    Yields a function that takes how much is done and how much there is. Nothing is shown without
    anything to do.
    """
    line = Line(in_a_log=False)

    def show(done: int, to_do: int) -> None:
        if to_do:
            share = done / to_do
            text = f"{what}: {done:,} of {counted(to_do, unit)}{left(share, line.elapsed_s())}"
            line.show(text, at_once=not 0 < done < to_do)

    try:
        yield show
    finally:
        line.close()


def left(share: float, elapsed_s: float) -> str:
    """Return how long the rest takes, as the end of a sentence; "" while that is not known.

    share: of the work that is done. elapsed_s: the time that this took.
    """
    if elapsed_s < LEAST_TOLD_S or not LEAST_TOLD_SHARE < share < 1:
        return ""
    seconds = round(elapsed_s * (1 - share) / share)
    if seconds < 90:
        return f", {max(1, seconds)} s left"
    return f", {round(seconds / 60)} min left"
