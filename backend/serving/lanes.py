"""Threads for requests that may have to wait, bounded queues before them, and groups of posts.

Each kind of long request has a lane with threads of its own, so that none of them keeps another
kind waiting. A request that finds its lane full is told at once to come later.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from backend.serving.environs import Environ

INLINE, GROUPED = "inline", "grouped"  # lanes without threads of their own; see `front`

MOST_TOGETHER = 32  # so many share what they can; larger groups only wait longer
PATIENCE = 0.25  # the next group waits for its clients at most this share of the last one's time
MOST_PATIENT_S = 0.02
MOST_QUEUED = 1000  # quick requests in the queue of a lane; there are hardly more connections

Result = TypeVar("Result")


class LaneNumbers(NamedTuple):
    """The numbers of a lane. refused: since the start. waits_s: in seconds, since the last call."""

    lane: str
    in_hand: int
    waiting: int
    refused: int
    waits_s: list[float]


class Group(NamedTuple):
    """A way to answer posts together.

    prepare: makes a post from a request, without waiting, or raises what is wrong with it.
    accept_all: returns for each post its response or an error; waits once for all.
    """

    prepare: Callable[[Environ], Any]
    accept_all: Callable[[Sequence[Any]], Sequence[Any]]


class LaneFullError(Exception):
    """The queue of a lane is full: as many requests as may wait for it wait already."""


@dataclass(slots=True)
class Threads:
    """The threads of a lane. Use it in the thread of the loop; `numbers` may be called in any.

    most_waiting: how many requests may wait for one of `count` threads. niceness: added to that of
    the process, so that the system lets others go first. Do not give it to threads that hold locks
    for which others wait. changed: called in the loop, with 1 when a request has come and -1 when
    it has ended.
    """

    lane: str
    count: int
    most_waiting: int
    niceness: int = 0
    in_hand: int = 0
    refused: int = 0
    changed: Callable[[int], None] = lambda _: None
    _waits_s: list[float] = field(default_factory=list)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.count, self.lane, _let_others_first, (self.niceness,))

    async def run(
        self,
        work: Callable[[float], Result],
        abandon: Callable[[Result], None] = lambda _: None,
        *,
        is_admitted: bool = False,
    ) -> Result:
        """Have a thread call `work` with the time it had to wait for that, in seconds.

        abandon: takes the result, in any thread, if the caller is cancelled meanwhile.
        is_admitted: the lane has begun with the request already, so it is never refused.

        Raises LaneFullError, and what `work` raises.
        """
        if not is_admitted and self.in_hand >= self.count + self.most_waiting:
            self.refused += 1
            raise LaneFullError
        loop = asyncio.get_running_loop()
        asked_at, is_refused = time.perf_counter(), False

        def waited() -> Result:
            if is_refused:
                raise asyncio.CancelledError
            wait_s = time.perf_counter() - asked_at
            self._waits_s.append(wait_s)
            return work(wait_s)

        try:
            future = self._pool.submit(waited)
        except RuntimeError:  # the system refuses a thread; the pool has kept the work for others
            is_refused = True
            raise
        self.in_hand += 1
        self.changed(1)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._done))
        try:
            return await asyncio.wrap_future(future, loop=loop)
        except asyncio.CancelledError:
            if future.cancelled():
                del work  # and the body that it holds: the pool keeps `waited` until its turn
            future.add_done_callback(lambda done: _abandon(done, abandon))
            raise

    def _done(self) -> None:
        self.in_hand -= 1
        self.changed(-1)

    def close(self) -> None:
        self._pool.shutdown()

    def numbers(self) -> LaneNumbers:
        """Return the numbers to count; the waits are those since the last call."""
        waits, self._waits_s = self._waits_s, []
        waiting = max(0, self.in_hand - self.count)
        return LaneNumbers(self.lane, self.in_hand - waiting, waiting, self.refused, waits)


def _let_others_first(niceness: int) -> None:
    """Lower the priority of this thread, or go on as before where the system refuses that.

    A unit with `SystemCallFilter=~@resources` may not change priorities. The pool would be broken
    for good if this raised.
    """
    with suppress(OSError):
        os.nice(niceness)


def _abandon(done: "Future[Result]", abandon: Callable[[Result], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        abandon(done.result())


class RequestGroups:
    """Gathers the posts that come while others wait for the disk: the next group shares one sync.

    Clients that were answered together often post again at once. So the next group waits for as
    many posts as the last one had, but no longer than a part of the time that one took. A client
    that posts alone never waits for others.

    accept_all: as in `Group`.
    """

    def __init__(self, accept_all: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        self._accept_all = accept_all
        self._threads = ThreadPoolExecutor(1, thread_name_prefix=GROUPED)
        self._threads.submit(int)  # starts the thread: if that is refused, one post has an error
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._in_hand = 0
        self._start: asyncio.Handle | None = None  # starts the next group, if its time is fixed
        self._is_patient = False  # whether it starts sooner if enough posts come
        self._wanted = 1  # a group of so many posts does not wait for others
        self._patient_until = 0.0  # by the clock of the loop
        self.refused = 0

    async def outcome(self, post: Any) -> Any:
        """Return the outcome of a post: a response or an error. Raises LaneFullError."""
        if len(self._waiting) >= MOST_QUEUED:
            self.refused += 1
            raise LaneFullError
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((post, future))
        self._fix_start(loop)
        return await future

    def _fix_start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Fix when the next group starts, if it can."""
        if self._in_hand or not self._waiting:
            return
        is_complete = len(self._waiting) >= self._wanted
        if self._start is not None:
            if not (is_complete and self._is_patient):
                return
            self._start.cancel()
        self._is_patient = not is_complete and loop.time() < self._patient_until
        if self._is_patient:
            self._start = loop.call_at(self._patient_until, self._hand_over, loop)
        else:
            self._start = loop.call_soon(self._hand_over, loop)  # after other posts of this turn

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._start = None
        group = self._waiting[:MOST_TOGETHER]
        del self._waiting[:MOST_TOGETHER]
        self._in_hand = len(group)
        finish = partial(self._finish, loop, group, loop.time())
        done = self._threads.submit(self._accept_all, [post for post, _ in group])
        done.add_done_callback(lambda d: loop.call_soon_threadsafe(finish, d))

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        group: list[tuple[Any, "asyncio.Future[Any]"]],
        started: float,
        done: "Future[Sequence[Any]]",
    ) -> None:
        error = done.exception()
        outcomes = [error] * len(group) if error is not None else done.result()
        for (_, future), outcome in zip(group, outcomes, strict=True):
            if not future.done():  # else its client is gone
                future.set_result(outcome)
        now = loop.time()
        self._in_hand = 0
        self._wanted = min(len(group) + len(self._waiting), MOST_TOGETHER)
        self._patient_until = now + min(PATIENCE * (now - started), MOST_PATIENT_S)
        self._fix_start(loop)

    def is_busy(self) -> bool:
        """Return whether posts are in hand or wait. It may be called in any thread."""
        return self._in_hand > 0 or bool(self._waiting)

    def close(self) -> None:
        self._threads.shutdown()

    def numbers(self) -> LaneNumbers:
        return LaneNumbers(GROUPED, self._in_hand, len(self._waiting), self.refused, [])
