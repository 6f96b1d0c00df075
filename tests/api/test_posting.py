"""Posting one flight: receipts, waiting until it is mined, and being pushed back."""

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.base.errors import TryLater
from backend.base.files import require_free
from backend.base.settings import Settings
from backend.sealing.miner import Miner
from backend.storage.caches import RECENT_S
from tests.api.processes import until
from tests.api.worlds import GOOD, Json, client_of, good, new_chain, problem, seal
from tests.submitting import at_work

WITHIN_S = 20.0
LEG = f"OP_CARRIER_FL_NUM={GOOD['OP_CARRIER_FL_NUM']}&FL_DATE={GOOD['FL_DATE']}"


def post(client: FlaskClient, flight: Json = GOOD, mode: str | None = None) -> TestResponse:
    return client.post("/transactions" + (f"?mode={mode}" if mode else ""), json=flight)


def content_hash(transaction: Json) -> str:
    """The leaf hash of a transaction (RFC 6962) by the standard library alone."""
    written = json.dumps(transaction, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"\x00" + written.encode()).hexdigest()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return new_chain(tmp_path, mine_interval_s=0.2, commit_wait_s=WITHIN_S)


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    with client_of(settings) as client:
        yield client


def test_a_flight_can_be_tried_without_being_accepted(client: FlaskClient) -> None:
    def tried(flight: Json) -> TestResponse:
        return client.post("/transactions?dry_run=true", json=flight)

    sent = {**GOOD, "ARR_DELAY": "-11.00"}
    stored = {**GOOD, "ARR_DELAY": -11}
    answer = good(tried(sent))
    assert answer == {
        "dry_run": True,
        "accepted": 1,
        "duplicate_of": None,
        "conflicts_with": None,
        "flight": stored,
    }
    wrong = problem(tried({**GOOD, "ORIGIN": "x", "YEAR": "y"}), 422)
    assert {error["field"] for error in wrong["errors"]} == {"ORIGIN", "YEAR"}
    assert good(client.get("/tip"))["pending"] == 0
    number = good(post(client), 202)["TRANSACTION_ID"]
    assert good(tried(GOOD))["duplicate_of"] == number
    assert good(tried({**GOOD, "OP_CARRIER_FL_NUM": 77}))["duplicate_of"] is None
    assert good(client.get("/tip"))["pending"] == 1
    assert good(client.post("/transactions?dry_run=false", json=GOOD), 202)["state"] == "pending"


@pytest.mark.parametrize("mode", [None, "sync", "async"])
def test_a_flight_is_accepted_and_pending_until_it_is_mined(
    client: FlaskClient, settings: Settings, monkeypatch: pytest.MonkeyPatch, mode: str | None
) -> None:
    good(post(client, {**GOOD, "OP_CARRIER_FL_NUM": 77}), 202)  # makes the files
    synced, real = list[threading.Thread](), os.fdatasync

    def sync(descriptor: int) -> None:
        synced.append(threading.current_thread())
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", sync)
    response = post(client, mode=mode)
    is_durable = mode != "async"
    assert (threading.current_thread() in synced) == is_durable  # another syncs it later
    receipt = good(response, 202)
    transaction = {**GOOD, "TRANSACTION_ID": 1, "timestamp": receipt["timestamp"]}
    assert abs(receipt["timestamp"] - 1000 * time.time()) < 60_000
    assert receipt == {
        "TRANSACTION_ID": 1,
        "state": "pending",
        "timestamp": receipt["timestamp"],
        "durable": is_durable,
        "content_hash": content_hash(transaction),
        "duplicate_of": None,
        "conflicts_with": None,
    }
    assert response.headers["Location"] == "/transactions/1"
    shown = {"state": "pending", "transaction": transaction, "block": None}
    assert good(client.get(response.headers["Location"])) == shown
    assert good(client.get("/tip"))["pending"] == 2

    seal(settings, [[]])
    tip = good(client.get("/tip"))
    assert (tip["height"], tip["pending"], tip["transactions"]) == (1, 0, 2)
    block = {"height": 1, "hash": tip["hash"]}
    assert good(client.get("/transactions/1")) == shown | {"state": "mined", "block": block}


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON"],
)
def test_ways_to_say_json(client: FlaskClient, content_type: str) -> None:
    body = "\ufeff" + json.dumps(GOOD)  # some editors write a byte order mark
    good(client.post("/transactions", data=body, content_type=content_type), 202)


# --- until it is mined ---------------------------------------------------------------------------


def test_commit_answers_when_the_flight_is_mined_and_found(
    client: FlaskClient, settings: Settings
) -> None:
    with at_work(Miner(settings, print)):
        response = post(client, mode="commit")
        receipt = good(response, 201)
        assert receipt["state"] == "mined"
        assert response.headers["Location"] == "/transactions/0"
        answer = good(client.get("/transactions/0"))
        assert answer["state"] == "mined"
        assert content_hash(answer["transaction"]) == receipt["content_hash"]
        legs = good(client.get(f"/filter_transactions?{LEG}"))["flights"]
        assert [leg["TRANSACTION_ID"] for leg in legs] == [0]


def test_with_a_miner_the_service_is_ready_and_knows_when_the_next_block_comes(
    client: FlaskClient, settings: Settings
) -> None:
    with at_work(Miner(settings, print)):
        until(lambda: client.get("/health/ready").status_code == 200)
        assert good(client.get("/health/ready")) == {"status": "ready"}
        wait_ms = good(client.get("/tip"))["next_block_at"] - 1000 * time.time()
        assert -5_000 < wait_ms <= 1_000
    problem(client.get("/health/ready"), 503)


def test_commit_that_takes_too_long_is_accepted_all_the_same(tmp_path: Path) -> None:
    with client_of(new_chain(tmp_path, commit_wait_s=0.3)) as client:
        started = time.monotonic()
        receipt = good(post(client, mode="commit"), 202)
        assert time.monotonic() - started >= 0.3
        assert receipt["state"] == "pending"
        assert good(client.get("/transactions/0"))["state"] == "pending"


def test_only_some_may_wait_and_the_others_are_answered_at_once(tmp_path: Path) -> None:
    settings = new_chain(tmp_path, threads=6, commit_wait_s=WITHIN_S, mine_interval_s=0.1)
    with client_of(settings) as client, ThreadPoolExecutor(9) as pool:
        app = client.application
        many = [pool.submit(post, app.test_client(), GOOD, "commit") for _ in range(9)]
        until(lambda: sum(future.done() for future in many) == 6)
        at_once = [future.result() for future in many if future.done()]
        assert [response.status_code for response in at_once] == [202] * 6
        with at_work(Miner(settings, print)):
            statuses = sorted(future.result(WITHIN_S).status_code for future in many)
            assert post(client, mode="commit").status_code == 201  # who has waited leaves room
        assert statuses == [201] * 3 + [202] * 6
        assert good(client.get("/tip"))["transactions"] == 10


def test_flights_that_are_sent_again_wait_once_for_the_other_processes(
    client: FlaskClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent(number: int, status: int) -> Json:
        flight, key = {**GOOD, "OP_CARRIER_FL_NUM": number}, {"Idempotency-Key": str(number)}
        return good(client.post("/transactions", json=flight, headers=key), status)

    numbers, pauses_s = range(1, 6), list[float]()
    ids = [sent(number, 202)["TRANSACTION_ID"] for number in numbers]
    seal(settings, [[]])
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", pauses_s.append)
        again = [sent(number, 201) for number in numbers]
    assert [(receipt["TRANSACTION_ID"], receipt["state"]) for receipt in again] == [
        (number, "mined") for number in ids
    ]
    assert pauses_s == [RECENT_S]


# --- pushed back ---------------------------------------------------------------------------------


def test_only_where_it_helps_a_lower_setting_is_advised(tmp_path: Path) -> None:
    for free, helps in ((0, False), (200, False), (201, True)):
        with pytest.raises(TryLater) as refused:
            require_free(tmp_path, 2**26, size=200, free=free)
        assert ("FLIGHTCHAIN_MIN_FREE_BYTES" in str(refused.value)) == helps
    with pytest.raises(TryLater, match=r"free some space$"):
        require_free(tmp_path, 0, size=201, free=200)
