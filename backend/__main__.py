"""Runs the command line: `python -m backend`."""

import gc
import os
import sys

from backend.base.processes import interruption
from backend.base.words import COMMAND


def _open_closed_streams() -> None:
    """Open the null device as each standard stream that is closed, as by `>&-`.

    Otherwise the next file that is opened gets that number, perhaps one of blocks, and messages of
    any library would be written into it. `sys.stdin` stays None.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        if name != "stdin":
            setattr(sys, name, open(number, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  a number


interruption.ends_at_once()
_open_closed_streams()

from backend.cli.commands import main  # noqa: E402  this import takes most of the start

try:
    main(prog_name=COMMAND)
finally:
    gc.freeze()  # all of it goes now, and looking for cycles among it takes a quarter of a command
