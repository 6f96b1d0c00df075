"""Waits for moments on CLOCK_MONOTONIC, inside Locust on gevent. Linux only.

gevent's own timers end up to a millisecond late, because its event loop waits in whole
milliseconds. `wait_until` waits for a timer of the kernel, as for a socket: other greenlets run on,
and no processor time is taken. A program that slept needs some tenths of a millisecond to get
going, so who must act at a moment waits with `meet`, which lets the whole process sleep for the
last `EARLY_S`. Answers that come meanwhile lose nothing by that: the kernel notes when they came
(`loadtests.generation.client`). What can wait asks `Appointments` for a gap.
"""

import ctypes
import os
from collections import deque
from time import CLOCK_MONOTONIC, monotonic

import gevent
from gevent.monkey import get_original

EARLY_S = 0.0004
GAP_S = 0.0008  # before an appointment, in which nothing else is begun
PAST_S = 0.0002

_LIBC = ctypes.CDLL(None, use_errno=True)
_TIMER_ABSTIME, _READABLE, _SET_TIMER_SLACK = 1, 1, 29
_sleep = get_original("time", "sleep")


class _TimerEnd(ctypes.Structure):
    """Mirrors `struct itimerspec` of timerfd_settime(2): the repetition interval, and the end."""

    _fields_ = tuple(
        (f"{name}_{unit}", ctypes.c_long) for name in ("interval", "end") for unit in ("s", "ns")
    )


def wait_until(due_s: float) -> None:
    """Return at `due_s`, or at once if that is past. Other greenlets run on."""
    if due_s <= monotonic():
        return
    timer = _LIBC.timerfd_create(CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
    if timer < 0:
        raise OSError(ctypes.get_errno(), "the kernel gave no timer to wait for")
    loop = gevent.get_hub().loop
    try:
        end = _TimerEnd(0, 0, *divmod(int(due_s * 1e9), 1_000_000_000))
        _LIBC.timerfd_settime(timer, _TIMER_ABSTIME, ctypes.byref(end), None)
        has_ended = loop.io(timer, _READABLE)
        has_ended.priority = loop.MAXPRI  # before answers that are to be read
        gevent.get_hub().wait(has_ended)
    finally:
        os.close(timer)


def meet(due_s: float) -> None:
    """Return at `due_s`, or at once if that is past. No greenlet runs in the last `EARLY_S`."""
    wait_until(due_s - EARLY_S)
    left_s = due_s - monotonic()
    if left_s > 0:
        _sleep(left_s)


def sleep_precisely() -> None:
    """Let sleeps of this thread end within a microsecond; Linux is 50 µs late on purpose."""
    _LIBC.prctl(_SET_TIMER_SLACK, 1)


class Appointments:
    """Keeps the moments at which this process will send, so that other work can avoid them."""

    def __init__(self) -> None:
        self._due_s: deque[float] = deque()

    def make(self, due_s: float) -> None:
        """Note a moment; moments must be noted in order."""
        self._due_s.append(due_s)

    def wait_for_gap(self) -> None:
        """Return once no appointment lies within the next `GAP_S`."""
        while self._due_s and self._due_s[0] - monotonic() < GAP_S:
            wait_until(self._due_s.popleft() + PAST_S)
