"""Ctrl-C: one word and one status for it, whenever it comes.

While a program still loads its parts there is nothing to tidy up, and an exception could come up
inside of any of them, where it may be taken for something else. So the program ends at once then;
from `may_be_caught` on Ctrl-C raises KeyboardInterrupt, as usual.
"""

import os
import signal
from contextlib import suppress
from typing import Any

STOPPED = "stopped"
STATUS = 130


def ends_at_once() -> None:
    """Let Ctrl-C end this process. Not if it is ignored, as by what a shell starts with `&`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def may_be_caught() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: Any) -> None:  # noqa: ARG001  the signature of a handler
    with suppress(OSError):
        os.write(2, f"{STOPPED}\n".encode())
    os._exit(STATUS)
