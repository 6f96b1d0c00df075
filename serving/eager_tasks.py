"""Runs a coroutine at once until it has to wait, and the rest of it as a task.

Most requests are answered without any wait. Such an answer is out before a task would have started.
Python 3.12 calls this an eager task; here it works in Python 3.11, too. Until its first wait the
coroutine belongs to no task, so it must not ask for the current one.
"""

import asyncio
from collections.abc import Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any


def begun(
    work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop
) -> asyncio.Task[None] | None:
    """Begin `work`, in the thread of the loop. Returns the task that ends it; None if it is done.

    Raises what `work` raises before its first wait.
    """
    try:
        awaited = work.send(None)
    except StopIteration:
        return None
    return loop.create_task(_rest(work, awaited))


async def _rest(work: Coroutine[Any, Any, None], awaited: Any) -> None:
    await _until_done(work, awaited)


@coroutine
def _until_done(work: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """Run `work`, which waits for `awaited`, to its end."""
    while True:
        try:
            result = yield awaited
        except BaseException as error:  # noqa: BLE001  `work` decides what to do about it
            step = partial(work.throw, error)
        else:
            step = partial(work.send, result)
        try:
            awaited = step()
        except StopIteration:
            return
