"""Ends a program on Ctrl-C with one word and one exit status, whenever it comes.

While a program still imports its modules there is nothing to tidy up, and a KeyboardInterrupt in
the middle of an import may be taken for another error. So the program ends at once then; from
`may_be_caught` on, Ctrl-C raises KeyboardInterrupt. It does so once: people press again while the
program tidies up, and half of that would be taken for another error. If the program still runs
after `TIDIES_FOR_S`, because it hangs or the exception was lost, Ctrl-C ends it at once.
"""

import os
import signal
import time
from contextlib import suppress
from functools import partial
from typing import Any

STOPPED = "stopped"
STATUS = 130
TIDIES_FOR_S = 30.0


def ends_at_once() -> None:
    """Let Ctrl-C end this process at once.

    If it is ignored, as in a process that a shell started with `&`, it stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def may_be_caught() -> None:
    """Let the first Ctrl-C raise KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise_once)


def _raise_once(number: int, frame: Any) -> None:
    signal.signal(number, partial(_end_if_late, time.monotonic() + TIDIES_FOR_S))
    signal.default_int_handler(number, frame)


def _end_if_late(deadline_s: float, number: int, frame: Any) -> None:
    if time.monotonic() >= deadline_s:
        _end(number, frame)


def _end(number: int, frame: Any) -> None:  # noqa: ARG001  the signature of a handler
    with suppress(OSError):
        os.write(2, f"{STOPPED}\n".encode())
    os._exit(STATUS)
