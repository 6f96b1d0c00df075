"""Blocks and transactions over HTTP: from the caches by the worker's loop, else by its threads."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from backend.ledger.ledger import Ledger
from backend.storage.block_store import BlockStore
from backend.storage.caches import RECENT_S
from backend.storage.layout import Place
from tests.api.worlds import World, seal, world_in
from tests.loops import Loop, answers, looping_service
from tests.storage.chains import block_file, flip

TRANSACTION, PAGE, BLOCK = "/transactions/150", "/blocks/5?limit=20", "/blocks/5"
LIVE = "/health/live"


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


class Lanes:
    """A loop with the real application on a chain; counts what is handed to threads."""

    def __init__(self, loop: Loop, world: World, ledger: Ledger) -> None:
        self.loop, self.world, self.ledger = loop, world, ledger
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
    with looping_service(world.settings) as (loop, ledger):
        yield Lanes(loop, world, ledger)


@pytest.mark.parametrize("path", [TRANSACTION, PAGE, "/transactions/00150"])
def test_the_disk_is_left_to_a_thread_and_the_caches_to_the_loop(lanes: Lanes, path: str) -> None:
    status, cold, who = lanes.ask(path)
    assert (status, who) == (200, "thread")
    for _ in range(3):
        assert lanes.ask(path) == (200, cold, "loop")


def test_whoever_answers_says_the_same(lanes: Lanes) -> None:
    whole = lanes.ask("/blocks/7")[1]["block"]
    expected = [flight for flight in lanes.world.transactions if flight["BLOCK_HEIGHT"] == 7]
    assert lanes.ask("/blocks/7?limit=50")[1]["block"] == whole
    for wanted, shown in zip(expected, whole["transactions"], strict=True):
        assert {**shown, "BLOCK_HEIGHT": 7} == wanted
        status, answer, who = lanes.ask(f"/transactions/{wanted['TRANSACTION_ID']}")
        assert (status, answer["transaction"], who) == (200, shown, "loop")
        assert answer["block"] == {"height": 7, "hash": lanes.world.hashes[7]}


@pytest.mark.parametrize("path", [BLOCK, PAGE, TRANSACTION])
def test_what_the_client_has_is_told_by_the_loop(lanes: Lanes, path: str) -> None:
    lanes.ask(path)
    client = lanes.loop.answered(request(path))
    (etag,) = [line for line in client.got.split(b"\r\n") if line.startswith(b"ETag: ")]
    known = etag.decode().replace("ETag", "If-None-Match")
    tag = known.split('"')[1]
    for headers in (
        [known],
        [f'IF-NONE-MATCH:"other", W/"{tag}" '],
        ['If-None-Match: "other"', known],
        [f'If-None-Match: "{tag}-zstd"', "Accept-Encoding: gzip, deflate, br, zstd"],
        ["accept-encoding: gzip", f'If-None-Match: "{tag}-gzip"'],
    ):
        assert lanes.ask(path, *headers) == (304, None, "loop")
    for other in (
        ['If-None-Match: "other"'],
        [f'If-None-Match: "{tag}x"'],
        [f'X-If-None-Match: "{tag}"'],
        [f'If-None-Match: "{tag}-zstd"'],
        [f'If-None-Match: "{tag}-gzip"', "Accept-Encoding: br"],
    ):
        assert lanes.ask(path, *other)[::2] == (200, "thread" if path == BLOCK else "loop")
    assert lanes.ask(BLOCK, "If-None-Match: *")[::2] == (304, "thread")


def test_a_whole_block_is_left_to_a_thread(lanes: Lanes) -> None:
    assert [lanes.ask(BLOCK)[::2] for _ in range(3)] == [(200, "thread")] * 3


def test_a_new_block_is_looked_at_by_a_thread_first(lanes: Lanes) -> None:
    lanes.ask(PAGE)
    seal(lanes.world.settings, [[]])
    time.sleep(2 * RECENT_S)
    assert lanes.ask(PAGE)[::2] == (200, "thread")
    assert lanes.ask(PAGE)[::2] == (200, "loop")


def test_a_damaged_block_is_a_problem_each_time(lanes: Lanes) -> None:
    folder = lanes.world.settings.folder
    with closing(BlockStore(folder)) as store:
        place = store.place(5)
    flip(block_file(folder), place.offset + place.length - 10)
    for _ in range(3):
        for path in (PAGE, f"/transactions/{place.first_transaction}"):
            status, problem, _ = lanes.ask(path)
            assert (status, problem["status"]) == (503, 503)
            assert "block 5 is damaged" in problem["detail"]
    assert lanes.ask("/blocks/6?limit=20")[::2] == (200, "loop")  # came with its neighbour


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
