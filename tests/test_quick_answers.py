"""Blocks and transactions over HTTP: from the caches by the worker's loop, else by its threads."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.storage.block_store import BlockStore
from backend.storage.caches import RECENT_S
from backend.storage.layout import Place
from tests.api.worlds import World, seal, world_in
from tests.loops import Loop, answers, looping_service

TRANSACTION, PAGE, BLOCK = "/transactions/150", "/blocks/5?limit=20", "/blocks/5"
LIVE = "/health/live"


def request(path: str, *headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


class Lanes:
    """A loop with the real application on a chain; counts what is handed to threads."""

    def __init__(self, loop: Loop, world: World) -> None:
        self.loop, self.world = loop, world
        self.handed_over = 0
        in_thread = loop.worker.wsgi._in_thread

        def counted(*arguments: Any) -> Any:
            self.handed_over += 1
            return in_thread(*arguments)

        loop.worker.wsgi._in_thread = counted

    def ask(self, path: str, *headers: str) -> tuple[int, Any, str]:
        """Status and body of an answer, and who gave it: "loop" or "thread"."""
        before = self.handed_over
        client = self.loop.answered(request(path, *headers))
        ((status, body),) = answers(client.got)
        who = "thread" if self.handed_over > before else "loop"
        return status, json.loads(body) if body else None, who


@pytest.fixture
def lanes(tmp_path: Path) -> Iterator[Lanes]:
    world = world_in(tmp_path)
    with looping_service(world.settings) as (loop, _):
        yield Lanes(loop, world)


@pytest.mark.parametrize("path", [TRANSACTION, PAGE, "/transactions/00150"])
def test_the_disk_is_left_to_a_thread_and_the_caches_to_the_loop(lanes: Lanes, path: str) -> None:
    status, cold, who = lanes.ask(path)
    assert (status, who) == (200, "thread")
    for _ in range(3):
        assert lanes.ask(path) == (200, cold, "loop")


@pytest.mark.parametrize("path", [BLOCK, PAGE, TRANSACTION])
def test_what_the_client_has_is_told_by_the_loop(lanes: Lanes, path: str) -> None:
    lanes.ask(path)
    head = lanes.loop.answered(request(path)).got.decode()
    tag = head.partition('ETag: "')[2].partition('"')[0]
    for known in (tag, f"{tag}-zstd"):
        headers = (f'If-None-Match: "{known}"', "Accept-Encoding: gzip, deflate, br, zstd")
        assert lanes.ask(path, *headers) == (304, None, "loop")
    other = lanes.ask(path, f'If-None-Match: "{tag}x"')
    assert other[::2] == (200, "thread" if path == BLOCK else "loop")
    assert lanes.ask(BLOCK, "If-None-Match: *")[::2] == (304, "thread")


def test_a_new_block_is_looked_at_by_a_thread_first(lanes: Lanes) -> None:
    lanes.ask(PAGE)
    seal(lanes.world.settings, [[]])
    time.sleep(2 * RECENT_S)
    assert lanes.ask(PAGE)[::2] == (200, "thread")
    assert lanes.ask(PAGE)[::2] == (200, "loop")


def test_a_slow_disk_never_keeps_the_loop(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    read, is_reading, goes_on = BlockStore._read, threading.Event(), threading.Event()

    def slowly(store: BlockStore, first: int, run: list[Place]) -> list[tuple[Place, bytes]]:
        is_reading.set()
        assert goes_on.wait(60)
        return read(store, first, run)

    lanes.ask("/blocks/29?limit=1")
    monkeypatch.setattr(BlockStore, "_read", slowly)
    waiting = lanes.loop.client(request("/transactions/0"))
    lanes.loop.until(is_reading.is_set)
    for path in ("/blocks/29?limit=20", LIVE, f"/transactions/{len(lanes.world.transactions) - 1}"):
        assert lanes.ask(path)[::2] == (200, "loop")
    assert waiting.read() == b""
    goes_on.set()
    lanes.loop.until(lambda: bool(answers(waiting.read())))
    assert answers(waiting.got)[0][0] == 200
