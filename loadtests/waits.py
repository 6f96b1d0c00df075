"""Waits that add up to what they should be.

A thread that sleeps is woken late, by 0.05 to 0.1 ms: too much where a wait is 0.5 ms and there are
a thousand of them in a request. So a wait goes on until a deadline, and the next deadline is
counted from that one, not from when the thread was really woken: what one wait was too long, the
next is shorter.
"""

from time import monotonic, sleep


def sleep_until(deadline_s: float) -> None:
    """Return at `deadline_s`, seconds of `time.monotonic`; at once if that has passed."""
    left_s = deadline_s - monotonic()
    if left_s > 0:
        sleep(left_s)


class Pace:
    """Lets each piece of work take `piece_s` seconds in all: the real work, then a wait.

    The pieces between `begin` and `end` share one deadline. What they took too long in the end is
    taken off the next ones, but not more than they all should have taken. For one thread.
    """

    def __init__(self, piece_s: float) -> None:
        if not piece_s >= 0:
            raise ValueError(f"piece_s {piece_s}: must be 0 or more")
        self.piece_s = piece_s
        self._should_s = self._deadline_s = self._debt_s = 0.0

    def begin(self) -> None:
        """The first of some pieces begins now."""
        self._should_s = 0.0
        self._deadline_s = monotonic() - self._debt_s

    def piece_done(self) -> None:
        """The real work of a piece is done: wait until the time of the piece is over."""
        self._should_s += self.piece_s
        self._deadline_s += self.piece_s
        sleep_until(self._deadline_s)

    def end(self) -> None:
        """That was the last piece."""
        self._debt_s = min(max(0.0, monotonic() - self._deadline_s), self._should_s)
