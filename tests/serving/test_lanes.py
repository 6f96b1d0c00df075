"""Lanes: each kind of long request has threads and a queue of its own, and nobody else waits."""

import asyncio
import gc
import json
import os
import re
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import pytest
from flask import Response

from backend.api.operation import OPERATION, Operation
from backend.api.routes import Lane, Row
from backend.service.web_server import LONG_NICENESS
from backend.serving import front, lanes
from backend.serving.body_stream import PIECE_BYTES
from backend.serving.lanes import MOST_PATIENT_S, LaneNumbers, RequestGroups
from tests.cases import each_of
from tests.loops import OWN_THREADS, Client, Loop, Small, answers, looping

LONG = (Lane.SCAN, Lane.EXPORT, Lane.BATCH)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def status_of(client: Client) -> int:
    return answers(client.read())[0][0]


def numbers(loop: Loop, lane: Lane) -> LaneNumbers:
    (entry,) = [entry for entry in loop.worker.wsgi.numbers() if entry.lane == lane]
    assert isinstance(entry, LaneNumbers)
    return entry


@pytest.mark.parametrize("lane", LONG)
def test_who_finds_a_lane_full_is_told_at_once_and_the_others_are_answered(lane: Lane) -> None:
    with looping(service=Small(lane_threads=2, lane_queue=3)) as loop:
        with loop.held():
            clients = [loop.client(get(f"/{lane}")) for _ in range(9)]
            loop.until(lambda: sum(bool(answers(client.read())) for client in clients) == 4)
            refused = [client for client in clients if answers(client.got)]
            assert {status_of(client) for client in refused} == {503}
            assert all(b"Retry-After: " in client.got for client in refused)
            assert all(b"application/problem+json" in client.got for client in refused)
            before = numbers(loop, lane)
            assert (before.in_hand, before.waiting, before.refused) == (2, 3, 4)
        loop.until_answered(*clients)
        assert sorted(map(status_of, clients)) == [200] * 5 + [503] * 4
        after = numbers(loop, lane)
        assert (after.in_hand, after.refused) == (0, 4)
        assert len(before.waits_s) + len(after.waits_s) == 5


def test_of_many_refusals_a_second_only_the_first_come_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front, "REFUSED_AT_ONCE", 3)
    monkeypatch.setattr(front, "REFUSED_IN_S", 100.0)
    with looping(service=Small(lane_threads=1, lane_queue=0)) as loop, loop.held():
        loop.client(get("/scan"))
        loop.until(lambda: numbers(loop, Lane.SCAN).in_hand == 1)
        began_s = time.monotonic()
        at_once = [loop.answered(get("/scan")) for _ in range(3)]
        assert [status_of(client) for client in at_once] == [503] * 3
        late = loop.client(get("/scan"))
        loop.until(lambda: numbers(loop, Lane.SCAN).refused == 4)
        assert answers(loop.answered(get("/quick")).got)[0][0] == 200  # others need not wait
        loop.until_answered(late)
        assert time.monotonic() - began_s >= front.REFUSED_AFTER_S
        assert status_of(late) == 503


def test_threads_that_only_read_for_long_let_the_system_run_others_first() -> None:
    niceness: dict[str, int] = {}

    def note() -> None:
        niceness[threading.current_thread().name.partition("_")[0]] = os.nice(0)

    with looping() as loop:
        loop.application.before = note
        for lane in (*OWN_THREADS, "slow"):
            assert status_of(loop.answered(get(f"/{lane}"))) == 200
    ours = os.nice(0)
    assert niceness[Lane.SCAN] == niceness[Lane.EXPORT] == min(19, ours + LONG_NICENESS)
    others = {niceness[lane] for lane in niceness if lane not in {Lane.SCAN, Lane.EXPORT}}
    assert others == {ours}


def test_a_lane_works_where_the_system_refuses_another_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(niceness: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", refuse)
    with looping(service=Small()) as loop:
        assert status_of(loop.answered(get(f"/{Lane.SCAN}"))) == 200


def test_nobody_waits_behind_the_long_ones() -> None:
    with looping(service=Small(lane_threads=1, lane_queue=5)) as loop:
        goes_on = threading.Event()
        loop.application.before = lambda: goes_on.wait(60)
        long = [loop.client(get(f"/{lane}")) for lane in OWN_THREADS for _ in range(4)]
        loop.settle()
        assert not any(client.read() for client in long)
        loop.application.before = lambda: None  # for those that come now
        for path in ("/quick", "/slow", "/together"):
            assert answers(loop.answered(get(path)).got)[0][0] == 200
        goes_on.set()
        loop.until_answered(*long)


def test_what_a_thread_need_not_do_any_more_takes_no_memory() -> None:
    threads, goes_on = lanes.Threads("scan", 1, 5), threading.Event()

    async def come_and_go() -> bool:
        work = partial(str)
        kept = weakref.ref(work)
        first = asyncio.create_task(threads.run(lambda _: goes_on.wait(60)))
        second = asyncio.create_task(threads.run(work))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        del work, second
        gc.collect()
        is_kept = kept() is not None
        goes_on.set()
        await first
        return is_kept

    with closing(threads):
        assert not asyncio.run(come_and_go())


HELD_S = 0.4  # far more than a thread takes to begin on a busy machine


def test_a_request_says_how_long_it_waited_for_a_thread() -> None:
    with looping(service=Small(lane_threads=1, lane_queue=5)) as loop:
        with loop.held():
            clients = [loop.client(get("/scan")) for _ in range(2)]
            loop.until(lambda: numbers(loop, Lane.SCAN).waiting == 1)
            loop.step(HELD_S)
        loop.until_answered(*clients)
        waits = [re.search(rb"Server-Timing: .*, wait;dur=([0-9.]+)", one.got) for one in clients]
        assert waits[0] is not None
        assert waits[1] is not None
        assert float(waits[0][1]) < HELD_S * 1e3 <= float(waits[1][1])
        assert b"wait;" not in loop.answered(get("/quick")).got


def test_a_client_that_goes_away_gives_its_place_in_the_queue_to_others() -> None:
    with looping(service=Small(lane_threads=1, lane_queue=1)) as loop:
        with loop.held():
            first = loop.client(get("/scan"))
            loop.until(lambda: numbers(loop, Lane.SCAN).in_hand == 1)
            gone = loop.client(get("/scan"))
            loop.until(lambda: numbers(loop, Lane.SCAN).waiting == 1)
            gone.reset()
            loop.until(lambda: numbers(loop, Lane.SCAN).waiting == 0)
            after = loop.client(get("/scan"))
            loop.settle()
            assert not after.read()
        loop.until_answered(first, after)
        assert (status_of(first), status_of(after)) == (200, 200)


@each_of("path", ["/scan", "/together"])
def test_a_thread_that_the_system_refuses_costs_one_request(path: str) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    begun = list[None]()
    with looping(service=Small(lane_threads=1, lane_queue=0)) as loop:
        loop.service.before = lambda: begun.append(None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert status_of(loop.answered(get(path))) == 500
        assert status_of(loop.answered(get(path))) == 200
    assert len(begun) == 1  # what was answered 500 is not done later


def test_an_answer_that_has_begun_goes_on_whoever_waits_for_its_lane() -> None:
    with looping(service=Small(lane_threads=1, lane_queue=0)) as loop:
        small = loop.application
        small.table.add([Row("GET", "/pieces", OPERATION_, pieces, Lane.EXPORT)])
        client = loop.client(get("/pieces"))
        loop.until(lambda: client.read().count(b"a") > 1000)
        with loop.held():
            others = [loop.client(get("/export")) for _ in range(3)]
            for _ in range(10):  # so that its next piece is wanted now
                client.read()
                loop.step()
        loop.until(lambda: client.read().endswith(b"0\r\n\r\n"))
        assert client.got.count(b"z") == 1
        loop.until_answered(*others)


@each_of(
    ("said", "hears", "status"),
    [
        (b"GET /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n", True, 200),
        (b"GET /scan HTTP/1.1\r\nHost: localhost\r\n\r\n", False, None),
        (b"POST /scan HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf", False, None),
    ],
)
def test_a_client_that_leaves_has_one_line_in_the_access_log(
    capfd: pytest.CaptureFixture[str], said: bytes, hears: bool, status: int | None
) -> None:
    with looping() as loop:
        small = loop.application
        small.table.add([Row("GET", "/pieces", OPERATION_, pieces, Lane.EXPORT)])
        small.reception.access_log = True
        with loop.held():
            client = loop.client(said)
            loop.settle()
            assert bool(client.read()) == hears
            client.reset()
            loop.until(lambda: not loop.worker.connections)
        loop.until(lambda: numbers(loop, Lane.SCAN).in_hand == 0)
    (line,) = map(json.loads, capfd.readouterr().err.splitlines())
    assert (line["status"], line["is_whole"], line["bytes"] > 0) == (status, False, hears)


OPERATION_ = Operation("pieces", OPERATION, "", {})


def pieces(*_: object) -> Response:
    """An answer in many pieces, of which each is longer than what is kept in memory."""
    return Response(iter([b"a" * PIECE_BYTES] * 40 + [b"z"]), headers={"X": "y"})


# --- posts that share a sync -----------------------------------------------------------------


class SlowSyncs:
    """Accepts what comes, and takes a while for it; notes how many came together."""

    def __init__(self, took_s: float) -> None:
        self.took_s = took_s
        self.sizes: list[int] = []

    def __call__(self, posts: Sequence[int]) -> list[int]:
        self.sizes.append(len(posts))
        time.sleep(self.took_s)
        return list(posts)


async def posting(groups: RequestGroups, client: int, times: int) -> None:
    """A client that posts again soon after each answer."""
    for _ in range(times):
        assert await groups.outcome(client) == client
        await asyncio.sleep(0.002 * client)


def test_clients_that_were_answered_together_share_the_next_sync_too() -> None:
    syncs = SlowSyncs(0.2)

    async def run() -> None:
        groups = RequestGroups(syncs)
        await asyncio.gather(*(posting(groups, client, 6) for client in range(4)))
        groups.close()

    asyncio.run(run())
    assert sum(syncs.sizes) == 24
    assert syncs.sizes.count(4) >= 4


def test_who_does_not_come_again_is_not_waited_for_longer_than_a_part_of_a_sync() -> None:
    syncs = SlowSyncs(0.4)

    async def run() -> float:
        groups = RequestGroups(syncs)
        await asyncio.gather(*(groups.outcome(client) for client in range(4)))
        started = time.monotonic()
        await groups.outcome(0)
        took = time.monotonic() - started
        for _ in range(2):
            await groups.outcome(0)
        groups.close()
        return took

    took_s = asyncio.run(run())
    assert syncs.sizes == [4, 1, 1, 1]
    assert 0.4 + MOST_PATIENT_S / 2 < took_s < 0.4 * 2  # patience began before `started`


def test_nobody_is_waited_for_longer_than_a_moment_however_long_a_sync_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "PATIENCE", 50)

    async def run() -> float:
        groups = RequestGroups(SlowSyncs(0.1))
        await asyncio.gather(*(groups.outcome(client) for client in range(4)))
        started = time.monotonic()
        await groups.outcome(0)
        groups.close()
        return time.monotonic() - started

    assert asyncio.run(run()) < 50 * 0.1 / 2


def test_a_client_that_posts_alone_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "PATIENCE", 50)
    monkeypatch.setattr(lanes, "MOST_PATIENT_S", 5)
    syncs = SlowSyncs(0.1)

    async def run() -> float:
        groups = RequestGroups(syncs)
        started = time.monotonic()
        await posting(groups, 0, 5)
        took = time.monotonic() - started
        groups.close()
        return took

    assert asyncio.run(run()) < 5
    assert syncs.sizes == [1] * 5


@pytest.mark.parametrize("path", ["/slow", "/question", "/together"])
def test_long_work_waits_a_moment_while_others_wait_for_threads(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(front, "time", SimpleNamespace(**{**vars(time), "sleep": slept.append}))
    with looping() as loop:
        loop.worker.wsgi.yield_to_short_requests(Lane.THREAD, Lane.QUESTION)
        assert not slept
        with loop.held():
            client = loop.client(get(path))
            loop.settle()
            loop.worker.wsgi.yield_to_short_requests(Lane.THREAD, Lane.QUESTION)
            assert sum(slept) == pytest.approx(front.MOST_MOMENTS * front.MOMENT_S)
        loop.until_answered(client)
        loop.settle()
        slept.clear()
        loop.worker.wsgi.yield_to_short_requests(Lane.THREAD, Lane.QUESTION)
        assert not slept
