"""Ends a process with its parent: Linux sends a signal when the parent ends, however it ends.

The parent is the thread that started the process: it should wait for its end.
"""

import ctypes
import signal
from collections.abc import Callable
from functools import partial

_PR_SET_PDEATHSIG = 1


def die_with_parent(number: signal.Signals) -> None:
    """Have Linux send signal `number` to this process when its parent has died (prctl(2))."""
    dying_with_parent(number)()


def dying_with_parent(number: signal.Signals) -> Callable[[], object]:
    """Return `die_with_parent` for a new process, as `preexec_fn` of `subprocess.Popen`.

    It calls a function of C that was found before the fork. So it waits for no lock that a thread
    of the parent may have held at that moment, such as that of the dynamic linker.
    """
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, number)
