"""Coroutines that run at once until they wait, and as tasks from there on."""

import asyncio

import pytest

from serving.eager_tasks import begun


def test_what_never_waits_is_done_at_once_without_a_task() -> None:
    async def run() -> None:
        done = []

        async def work() -> None:
            done.append(1)

        assert begun(work(), asyncio.get_running_loop()) is None
        assert done == [1]

    asyncio.run(run())


def test_what_waits_goes_on_as_a_task_with_what_it_waited_for() -> None:
    async def run() -> list[object]:
        loop, seen = asyncio.get_running_loop(), list[object]()
        first, second = loop.create_future(), loop.create_future()

        async def work() -> None:
            seen.append(await first)
            await asyncio.sleep(0)
            try:
                await second
            except LookupError as error:
                seen.append(str(error))

        task = begun(work(), loop)
        assert task is not None
        first.set_result("found")
        second.set_exception(LookupError("lost"))
        await task
        return seen

    assert asyncio.run(run()) == ["found", "lost"]


@pytest.mark.parametrize("waits", [False, True])
def test_an_error_is_raised_where_it_is_waited_for(waits: bool) -> None:
    async def run() -> None:
        async def work() -> None:
            if waits:
                await asyncio.sleep(0)
            raise LookupError

        task = begun(work(), asyncio.get_running_loop())
        assert task is not None
        await task

    with pytest.raises(LookupError):
        asyncio.run(run())


def test_a_task_that_is_cancelled_tells_its_coroutine() -> None:
    async def run() -> list[str]:
        loop, seen = asyncio.get_running_loop(), list[str]()

        async def work() -> None:
            try:
                await loop.create_future()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        task = begun(work(), loop)
        assert task is not None
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    assert asyncio.run(run()) == ["cancelled"]
