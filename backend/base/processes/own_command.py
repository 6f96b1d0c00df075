"""Starts commands of ours, `python -m backend …`, which end with the service."""

import signal
import subprocess
import sys
from typing import Any

from backend.base.processes.parent_death import dying_with_parent


def started(*arguments: str, **streams: Any) -> "subprocess.Popen[bytes]":
    """Start a command. The thread that calls this must wait for its end. Raises OSError.

    streams: `stdout` and `stderr`, as of `subprocess.Popen`.
    """
    return subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-m", "backend", *arguments],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=dying_with_parent(signal.SIGINT),  # noqa: PLW1509  it only calls prctl
        **streams,
    )
