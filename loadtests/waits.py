"""Waits that last as long together as they should.

A thread that sleeps is woken late, by 0.05 to 0.1 ms: too much if a wait is 0.5 ms and a request
has a thousand of them. So a wait lasts until a deadline, and the next deadline is counted from that
one, not from when the thread was really woken: if one wait is too long, the next is shorter by as
much.
"""

from time import monotonic, sleep


def sleep_until(deadline_s: float) -> None:
    """Return at `deadline_s`, seconds of `time.monotonic`; at once if that has passed."""
    left_s = deadline_s - monotonic()
    if left_s > 0:
        sleep(left_s)


class Pace:
    """Lets each piece of work take `piece_s` seconds in all: the real work, then a wait.

    The pieces between `begin` and `end` share one deadline. Time by which they were too long in the
    end is taken off the next ones, but not more than they all should have taken. For one thread.
    """

    def __init__(self, piece_s: float) -> None:
        if not piece_s >= 0:
            raise ValueError(f"piece_s {piece_s}: must be 0 or more")
        self.piece_s = piece_s
        self._should_s = self._deadline_s = self._debt_s = 0.0

    def begin(self) -> None:
        """Note that the first of some pieces begins now."""
        self._should_s = 0.0
        self._deadline_s = monotonic() - self._debt_s

    def piece_done(self) -> None:
        """Wait until the time of a piece is over, because its real work is done."""
        self._should_s += self.piece_s
        self._deadline_s += self.piece_s
        sleep_until(self._deadline_s)

    def end(self) -> None:
        """Note that the last piece is done."""
        self._debt_s = min(max(0.0, monotonic() - self._deadline_s), self._should_s)
