"""Threads for what may have to wait, a bounded queue before them, and posts that wait together.

Each kind of long request has a lane with threads of its own, so that none of them keeps another
kind waiting. A request that finds its lane full is told at once to come later.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from serving.environs import Environ

INLINE, GROUPED = "inline", "grouped"  # lanes without threads of their own; see `front`

MOST_TOGETHER = 32  # posts share what they can by then, and wait for each other
MOST_QUEUED = 1000  # of quick requests, in each lane; there are hardly more connections

Result = TypeVar("Result")


class LaneNumbers(NamedTuple):
    """What a lane counts. refused: since the start. waits_s: seconds, since the last time."""

    lane: str
    in_hand: int
    waiting: int
    refused: int
    waits_s: list[float]


class Group(NamedTuple):
    """How posts are answered together.

    prepare: makes a post of a request, without waiting, or raises what is wrong with it.
    accept_all: for each post its response, or what stands against it; waits once for all.
    """

    prepare: Callable[[Environ], Any]
    accept_all: Callable[[Sequence[Any]], Sequence[Any]]


class LaneFullError(Exception):
    """As many requests as may wait for a lane wait already."""


@dataclass(slots=True)
class Threads:
    """The threads of a lane. It belongs to the thread of the loop; others may ask for `numbers`.

    most_waiting: how many requests may wait for one of `count` threads.
    """

    lane: str
    count: int
    most_waiting: int
    in_hand: int = 0
    refused: int = 0
    _waits_s: list[float] = field(default_factory=list)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix=self.lane)

    async def run(
        self,
        work: Callable[[float], Result],
        abandon: Callable[[Result], None] = lambda _: None,
        *,
        is_admitted: bool = False,
    ) -> Result:
        """Have a thread do `work`, which is told how long it had to wait for that, in seconds.

        abandon: takes the result if whoever waits for it is cancelled meanwhile, in any thread.
        is_admitted: it belongs to a request that the lane has done something for, and is never
        refused.

        Raises LaneFullError, and what `work` raises.
        """
        if not is_admitted and self.in_hand >= self.count + self.most_waiting:
            self.refused += 1
            raise LaneFullError
        loop = asyncio.get_running_loop()
        asked = time.perf_counter()

        def waited() -> Result:
            wait_s = time.perf_counter() - asked
            self._waits_s.append(wait_s)
            return work(wait_s)

        self.in_hand += 1
        future = self._pool.submit(waited)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._done))
        try:
            return await asyncio.wrap_future(future, loop=loop)
        except asyncio.CancelledError:
            future.add_done_callback(lambda done: _abandon(done, abandon))
            raise

    def _done(self) -> None:
        self.in_hand -= 1

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def numbers(self) -> LaneNumbers:
        """What is to be counted; the waits are those since the last time."""
        waits, self._waits_s = self._waits_s, []
        waiting = max(0, self.in_hand - self.count)
        return LaneNumbers(self.lane, self.in_hand - waiting, waiting, self.refused, waits)


def _abandon(done: "Future[Result]", abandon: Callable[[Result], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        abandon(done.result())


class RequestGroups:
    """Posts that come while others wait for the disk are the next group: one sync for all of it.

    accept_all: see `Group`.
    """

    def __init__(self, accept_all: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._accept_all = accept_all
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=GROUPED)
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._has_group = False  # the thread has one in hand, or will in this turn of the loop
        self._in_hand = 0
        self.refused = 0

    async def outcome(self, post: Any) -> Any:
        """What became of a post: a response, or what stands against it. Raises LaneFullError."""
        if len(self._waiting) >= MOST_QUEUED:
            self.refused += 1
            raise LaneFullError
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((post, future))
        if not self._has_group:
            self._has_group = True
            loop.call_soon(self._hand_over, loop)  # after others of this turn
        return await future

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        group = self._waiting[:MOST_TOGETHER]
        del self._waiting[:MOST_TOGETHER]
        self._in_hand = len(group)
        done = self._threads.submit(self._accept_all, [post for post, _ in group])
        done.add_done_callback(lambda d: loop.call_soon_threadsafe(self._finish, loop, group, d))

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        group: list[tuple[Any, "asyncio.Future[Any]"]],
        done: "Future[Sequence[Any]]",
    ) -> None:
        self._in_hand = 0
        error = done.exception()
        outcomes = [error] * len(group) if error is not None else done.result()
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if not future.done():  # else its client is gone
                future.set_result(outcome)
        if self._waiting:
            self._hand_over(loop)
        else:
            self._has_group = False

    def close(self) -> None:
        """End the thread."""
        self._threads.shutdown()

    def numbers(self) -> LaneNumbers:
        """What is to be counted."""
        return LaneNumbers(GROUPED, self._in_hand, len(self._waiting), self.refused, [])
