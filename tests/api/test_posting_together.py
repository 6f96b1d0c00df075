"""Posts of one turn of the loop: one sync for all, and each its own answer."""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend.chain.flight import as_mapping
from tests.api.worlds import GOOD, Json, new_chain
from tests.flights import flight
from tests.loops import Client, Loop, answers, looping_service


class Disk:
    """Counts the syncs, and refuses them when told."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.refuses = False
        self._sync = os.fdatasync
        patch.setattr(os, "fdatasync", self.sync)

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        if self.refuses:
            raise OSError(errno.EIO, "Input/output error")
        self._sync(descriptor)


class Posting:
    """Clients of one loop that post at the same time."""

    def __init__(self, loop: Loop, disk: Disk, restarts: list[str]) -> None:
        self.loop, self.disk, self.restarts = loop, disk, restarts
        self.clients: list[Client] = []

    def together(self, *requests: bytes) -> list[tuple[int, Json]]:
        """Status and answer of each, sent by clients that were connected before."""
        while len(self.clients) < len(requests):
            self.clients.append(self.loop.client())
            self.loop.settle()
        clients = self.clients[: len(requests)]
        for client, request in zip(clients, requests, strict=True):
            client.got = b""
            client.say(request)
        self.loop.until(lambda: all(answers(client.read()) for client in clients))
        responses = [answers(client.got)[0] for client in clients]
        return [(status, json.loads(body)) for status, body in responses]


@pytest.fixture
def posting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Posting]:
    settings = new_chain(tmp_path, mempool_transactions=12)
    disk, restarts = Disk(monkeypatch), list[str]()
    with looping_service(settings, lambda: restarts.append("restart")) as (loop, _):
        posting = Posting(loop, disk, restarts)
        posting.together(post(number(0)))  # the segment is there
        disk.syncs = 0
        yield posting


def number(value: int) -> Json:
    return dict(as_mapping(flight(value)))


def post(given: Any, *headers: str, path: str = "/transactions") -> bytes:
    body = json.dumps(given).encode()
    head = [
        *(f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"),
        *(f"Content-Length: {len(body)}", *headers, "", ""),
    ]
    return "\r\n".join(head).encode() + body


def test_posts_of_one_turn_share_a_sync(posting: Posting) -> None:
    paths = ["/transactions", "/transactions?mode=sync", "/new_transaction"]
    outcomes = posting.together(*(post(number(n), path=paths[n % 3]) for n in range(1, 9)))
    assert [status for status, _ in outcomes] == [202 if n % 3 < 2 else 201 for n in range(1, 9)]
    assert sorted(receipt["TRANSACTION_ID"] for _, receipt in outcomes) == list(range(1, 9))
    assert all(receipt["durable"] for _, receipt in outcomes)
    assert posting.disk.syncs == 1


def test_each_gets_its_own_answer(posting: Posting) -> None:
    key = "Idempotency-Key: once"
    outcomes = posting.together(
        post(number(1), key),
        post({**GOOD, "CANCELLED": 7}),
        post(number(1), key),
        post(number(2), key),
        post(number(0)),
        post([]),
        post(number(3), path="/transactions?mode=sync&x=1"),
    )
    assert [status for status, _ in outcomes] == [202, 422, 202, 422, 202, 422, 400]
    first, bad, again, reused, copy, no_object, unknown = (body for _, body in outcomes)
    assert first == again
    assert bad["field"] == "CANCELLED"
    assert reused["field"] == "Idempotency-Key"
    assert (copy["duplicate_of"], first["duplicate_of"]) == (0, None)
    assert no_object["field"] == "body"
    assert unknown["field"] == "x"
    assert {first["TRANSACTION_ID"], copy["TRANSACTION_ID"]} == {1, 2}
    assert posting.disk.syncs == 1


@pytest.mark.parametrize("value", ["1", "True", "yes", ""])
def test_a_dry_run_that_is_misspelt_is_no_post(posting: Posting, value: str) -> None:
    [(status, problem)] = posting.together(post(number(1), path=f"/transactions?dry_run={value}"))
    assert (status, problem["field"]) == (400, "dry_run")


def test_equal_flights_of_one_turn_are_named(posting: Posting) -> None:
    outcomes = posting.together(*[post(number(5))] * 3)
    receipts = sorted((answer["TRANSACTION_ID"], answer["duplicate_of"]) for _, answer in outcomes)
    assert receipts == [(1, None), (2, 1), (3, 1)]


def test_what_fits_is_accepted_and_the_rest_pushed_back(posting: Posting) -> None:
    outcomes = posting.together(*(post(number(n)) for n in range(1, 16)))
    assert [status for status, _ in outcomes].count(202) == 11
    assert [status for status, _ in outcomes].count(503) == 4
    assert all(
        "Retry-After: " in one.got.decode() for one in posting.clients if b" 503 " in one.got
    )


def test_nobody_is_told_of_what_is_not_on_the_disk(posting: Posting) -> None:
    posting.disk.refuses = True
    outcomes = posting.together(*(post(number(n)) for n in range(1, 5)))
    assert [status for status, _ in outcomes] == [503] * 4
    assert posting.disk.syncs == 1  # the kernel would call it done the next time
    assert posting.restarts == ["restart"] * 4
    posting.disk.refuses = False
    assert posting.together(post(number(9)))[0][0] == 503
    assert posting.disk.syncs == 1
