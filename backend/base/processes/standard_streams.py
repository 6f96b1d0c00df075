"""Gives a process that was started with a closed standard stream, as by `>&-`, the null device.

Otherwise the next file that it opens gets that number, perhaps one of blocks, and messages of any
library would be written into it.
"""

import os
import sys


def open_closed() -> None:
    """Open the null device as each standard stream that is closed; `sys.stdin` stays None."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        if name != "stdin":
            setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  a number
