"""Tells systemd that a process is ready and alive, if it was started by systemd and asked to.

The protocol is that of sd_notify(3): a datagram to the socket that NOTIFY_SOCKET names. Without
that variable nothing is sent. With WATCHDOG_USEC, systemd restarts a process that has been silent
for so many microseconds; `alive` sends twice in that time, however often it is called.
"""

import os
import socket
import time
from collections.abc import Mapping

from backend.base.words import Report


class Notifier:
    """Sends messages to systemd as the variables in `environment` say."""

    def __init__(self, environment: Mapping[str, str], report: Report) -> None:
        """report: takes a message for everything that could not be sent."""
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._report = report
        self._every_s = 0.0  # no watchdog
        if environment.get("WATCHDOG_PID", "") in {"", str(os.getpid())}:
            self._every_s = int(environment.get("WATCHDOG_USEC") or 0) / 2_000_000
        self._due = float("inf")  # a process that is not ready yet has another time limit

    def ready(self) -> None:
        self._due = 0.0
        self._send("READY=1")

    def alive(self) -> None:
        """Tell systemd that the process works on; after `ready`, call this after every piece."""
        if self._every_s and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every_s
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
                out.setblocking(False)  # never hold the work up
                out.sendto(state.encode("ascii"), address)
        except OSError as error:  # work goes on; systemd decides what to do about the silence
            self._report(f"cannot tell systemd {state}: {error.strerror or error}")
