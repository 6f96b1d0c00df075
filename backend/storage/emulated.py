"""Emulates the study's disk for the lab: reading blocks takes as long as there, divided by K.

In the study a block took 46 ms to read and 39 ms to check when it came from the disk. Here the
blocks of a run together take (46 + 39)/K ms each, the real reading included: the wait goes on until
that time is over. A system wakes a thread a little late: by how much a wait was too long, the next
wait of the thread is shorter, so that waits add up to what they should be.

Waits of several threads run at the same time: nothing queues at this disk. One worker of type
`sync` has one thread, as the study had.
"""

import threading
import time

READ_S = 0.046
CHECK_S = 0.039


class EmulatedDisk:
    """The study's disk, `speedup` (K, above 0) times as fast. Safe for threads."""

    def __init__(self, speedup: float) -> None:
        self._block_s = (READ_S + CHECK_S) / speedup
        self._of_thread = threading.local()

    def wait(self, blocks: int, start_s: float) -> None:
        """Return when as much time has passed since `start_s` as reading `blocks` blocks takes.

        start_s: a reading of `time.perf_counter`. No more is taken off the next wait than this
        one's length.
        """
        length_s = blocks * self._block_s
        until_s = start_s + length_s - getattr(self._of_thread, "debt_s", 0.0)
        left_s = until_s - time.perf_counter()
        if left_s > 0:
            time.sleep(left_s)
        self._of_thread.debt_s = min(max(0.0, time.perf_counter() - until_s), length_s)
