"""Ends a process with its parent: Linux sends a signal when the parent ends, however it ends."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals) -> None:
    """Have Linux send signal `number` to this process when its parent has died (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
