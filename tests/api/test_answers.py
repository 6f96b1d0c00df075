"""Good answers of every route, in full, against a plain Python loop over the flights."""

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from backend.api.problems import Problems
from backend.base.errors import FlightchainError
from backend.base.version import VERSION
from backend.sealing.miner import Miner
from backend.storage.caches import RECENT_S
from tests.api.worlds import (
    CITY_NAMES,
    GOOD,
    Json,
    World,
    answer_of,
    client_of,
    good,
    new_chain,
    problem,
    settings_for,
    transaction_of,
    world_in,
)
from tests.cases import each_of
from tests.storage.chains import block_file, flip, flip_in_block
from tests.submitting import at_work, run_together

ENGINES = ("index", "scan")
FIRST_DAY, LAST_DAY = "2015-01-01", "2015-12-31"


def ask(client: FlaskClient, route: str, **parameters: Any) -> Json:
    return good(client.get(f"/{route}?{urlencode(parameters)}"))


# --- the three questions -------------------------------------------------------------------------


def questions(world: World) -> Iterator[tuple[str, Json]]:
    """Each question about what there is most of, about much else, and about nothing."""
    days = {"INITIAL_DATE": FIRST_DAY, "FINAL_DATE": LAST_DAY}
    numbers = Counter((t["OP_CARRIER_FL_NUM"], t["FL_DATE"]) for t in world.transactions)
    ((number, day), count), *_ = numbers.most_common(1)
    assert count > 1
    yield "filter_transactions", {"OP_CARRIER_FL_NUM": number, "FL_DATE": day}
    carriers = {t["OP_CARRIER_AIRLINE_ID"] for t in world.transactions}
    assert len(carriers) > 3
    for carrier in carriers:
        yield "average_delays", {"OP_CARRIER_AIRLINE_ID": carrier, **days}
        one_day = dict.fromkeys(days, "2015-01-03")
        yield "average_delays", {"OP_CARRIER_AIRLINE_ID": carrier, **one_day}
    routes = Counter(tuple(t[name] for name in CITY_NAMES) for t in world.transactions)
    for route in [*(route for route, _ in routes.most_common(3)), ("Chicago, IL", "Nowhere")]:
        week = {"INITIAL_DATE": "2015-01-02", "FINAL_DATE": "2015-01-08"}
        yield "flight_counter", {**dict(zip(CITY_NAMES, route, strict=True)), **week}


@each_of("engine", ENGINES)
@each_of("height", [None, 5, 3, 1, 0])
def test_the_three_questions_are_answered_as_a_plain_loop_does(
    client: FlaskClient, world: World, engine: str, height: int | None
) -> None:
    as_of = {} if height is None else {"as_of": height}
    for route, asked in questions(world):
        answer = ask(client, route, **asked, engine=engine, **as_of)
        is_unknown = height is None and "Nowhere" in asked.values()
        assert ("warnings" in answer) == is_unknown
        answer.pop("warnings", None)
        assert answer == {
            **answer_of(route, world.below(height), asked),
            "as_of": world.as_of(height),
            "query": {**asked, "engine": engine},
        }


def test_json_is_utf_8_and_not_escaped(client: FlaskClient) -> None:
    response = client.get(
        "/flight_counter?ORIGIN_CITY_NAME=S%C3%A3o&DEST_CITY_NAME=x"
        "&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02"
    )
    assert "S\u00e3o".encode() in response.get_data()


# --- completions ---------------------------------------------------------------------------------


def test_cities_are_completed(client: FlaskClient, world: World) -> None:
    ends = Counter(t[name] for t in world.transactions for name in CITY_NAMES)
    cities = sorted((city for city in ends if city.startswith("C")), key=lambda c: (-ends[c], c))
    answer = ask(client, "suggest", field="city", q=" c ", limit=3)
    starts = [each for each in answer["suggestions"] if each["value"].startswith("C")]
    assert starts == [{"value": c, "label": c, "flights": ends[c]} for c in cities[:3]]
    assert answer == {
        "field": "city",
        "q": "c",
        "suggestions": answer["suggestions"],
        "as_of": world.as_of(),
    }


# --- blocks --------------------------------------------------------------------------------------


def header_hash(shown: Json) -> str:
    """The hash of a block by the standard library alone."""
    header = {name: value for name, value in shown.items() if name not in {"hash", "transactions"}}
    written = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(written).hexdigest()


def test_every_block_shows_its_header_its_hash_and_its_transactions(
    client: FlaskClient, world: World
) -> None:
    below = "0" * 64
    for height in range(world.tip + 1):
        block = good(client.get(f"/blocks/{height}"))["block"]
        transactions = [t for t in world.transactions if t["BLOCK_HEIGHT"] == height]
        assert set(block) == {
            *("version", "height", "previous_hash", "timestamp", "first_transaction"),
            *("transaction_count", "transactions_root", "body_hash", "summary_root"),
            *("history_root", "difficulty_bits", "nonce", "hash", "transactions"),
        }
        assert block["transactions"] == [transaction_of(t) for t in transactions]
        assert block["height"] == height
        assert block["transaction_count"] == len(transactions)
        assert block["previous_hash"] == below
        assert block["hash"] == header_hash(block) == world.hashes[height]
        below = block["hash"]


@each_of(
    ("query", "rows"),
    [
        ("offset=0&limit=1", slice(0, 1)),
        ("offset=5", slice(5, None)),
        ("limit=3", slice(0, 3)),
        ("offset=39&limit=1000", slice(39, 40)),
        ("offset=40", slice(40, None)),
        ("offset=1000&limit=1000", slice(40, None)),
        ("limit=0", slice(0, 0)),
    ],
)
def test_a_part_of_a_block(client: FlaskClient, world: World, query: str, rows: slice) -> None:
    block = good(client.get(f"/blocks/1?{query}"))["block"]
    assert block["transactions"] == [transaction_of(t) for t in world.transactions[:40][rows]]
    assert block["transaction_count"] == 40


@each_of("limit", [1, 7, 20, 29, 30, 31, 32, 100])
def test_paging_through_blocks_meets_each_height_once(
    client: FlaskClient, world: World, limit: int
) -> None:
    heights: list[int] = []
    page: str | None = f"/blocks?limit={limit}"
    while page is not None:
        response = client.get(page)
        answer = good(response)
        assert set(answer) == {"blocks", "next"}
        assert 1 <= len(answer["blocks"]) <= limit
        assert len(heights) <= world.tip
        heights += [block["height"] for block in answer["blocks"]]
        page = answer["next"]
        assert response.headers.get("Link") == (f'<{page}>; rel="next"' if page else None)
    assert heights == list(range(world.tip, -1, -1))


def test_the_list_of_blocks_has_headers_and_hashes_and_nothing_else(
    client: FlaskClient, world: World
) -> None:
    answer = good(client.get("/blocks"))
    assert len(answer["blocks"]) == 20
    assert answer["next"] == f"/blocks?before={world.tip - 19}&limit=20"
    for listed in answer["blocks"]:
        block = good(client.get(f"/blocks/{listed['height']}?limit=0"))["block"]
        assert listed == {name: value for name, value in block.items() if name != "transactions"}


@each_of(
    ("query", "heights"),
    [
        ("before=3", [2, 1, 0]),
        ("before=1", [0]),
        ("before=0", []),
        ("before=3&limit=2", [2, 1]),
        ("before=999999999999999&limit=1", [30]),
    ],
)
def test_blocks_below_a_height(client: FlaskClient, query: str, heights: list[int]) -> None:
    answer = good(client.get(f"/blocks?{query}"))
    assert [block["height"] for block in answer["blocks"]] == heights


def test_a_block_is_found_by_its_hash(client: FlaskClient, world: World) -> None:
    for height, digits in ((0, 64), (1, 64), (17, 63), (5, 12), (world.tip, 8)):
        answer = good(client.get(f"/blocks?hash={world.hashes[height][:digits].upper()}"))
        listed = good(client.get(f"/blocks?before={height + 1}&limit=1"))["blocks"]
        assert answer == {"blocks": listed, "next": None}
    assert good(client.get(f"/blocks?hash={'0' * 64}")) == {"blocks": [], "next": None}


def test_a_hash_goes_with_a_height(client: FlaskClient, world: World) -> None:
    for before, count in ((5, 0), (6, 1), (7, 1)):
        answer = good(client.get(f"/blocks?hash={world.hashes[5]}&limit=3&before={before}"))
        assert len(answer["blocks"]) == count


def test_the_tip(client: FlaskClient, world: World) -> None:
    response = client.get("/tip")
    newest = good(client.get(f"/blocks/{world.tip}"))["block"]
    assert good(response) == {
        "height": world.tip,
        "hash": world.hashes[-1],
        "timestamp": newest["timestamp"],
        "transactions": len(world.transactions),
        "pending": 0,
        "next_block_at": None,
    }
    assert response.headers["Cache-Control"] == "no-cache"


# --- transactions --------------------------------------------------------------------------------


def test_every_mined_transaction_is_found_by_its_id(client: FlaskClient, world: World) -> None:
    for transaction in [*world.transactions[:101], *world.transactions[101::97]]:
        number, height = transaction["TRANSACTION_ID"], transaction["BLOCK_HEIGHT"]
        assert good(client.get(f"/transactions/{number}")) == {
            "state": "mined",
            "transaction": transaction_of(transaction),
            "block": {"height": height, "hash": world.hashes[height]},
        }


# --- health, methods -----------------------------------------------------------------------------


def test_alive(client: FlaskClient) -> None:
    alive = good(client.get("/health/live"))
    assert (alive["status"], alive["version"]) == ("ok", VERSION)
    assert alive["commit"]


def test_without_a_miner_the_service_is_not_ready_and_says_so(client: FlaskClient) -> None:
    response = client.get("/health/ready")
    body = problem(response, 503)
    assert len(body["reasons"]) == 1
    assert "miner" in body["reasons"][0]
    assert body["detail"] == body["reasons"][0]
    assert int(response.headers["Retry-After"]) >= 1


ROUTES = [
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01",
    "/average_delays?OP_CARRIER_AIRLINE_ID=1&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-01",
    "/flight_counter?ORIGIN_CITY_NAME=a&DEST_CITY_NAME=b&INITIAL_DATE=2015-01-01&FINAL_DATE=1/1/2015",
    "/suggest?field=city&q=ch",
    "/suggest?field=airport",
    "/suggest?field=carrier",
    "/suggest?field=flight_number",
    "/blocks",
    "/blocks/1",
    "/tip",
    "/transactions/1",
    "/health/live",
]


@each_of("path", ROUTES)
def test_head_is_get_without_the_body(client: FlaskClient, path: str) -> None:
    get, head = client.get(path), client.head(path)
    assert head.status_code == get.status_code == 200
    assert head.get_data() == b""
    for name in ("X-Request-ID", "Server-Timing"):
        assert head.headers.pop(name)
        assert get.headers.pop(name)
    assert head.headers == get.headers


def test_head_of_a_problem_has_no_body(client: FlaskClient) -> None:
    head = client.head("/blocks/9999")
    assert (head.status_code, head.get_data()) == (404, b"")
    assert head.headers["Content-Type"] == "application/problem+json"


# --- chains of other sizes -----------------------------------------------------------------------

QUESTIONS = [path for path in ROUTES if "?" in path and not path.startswith("/suggest")]
COMPLETIONS = [path for path in ROUTES if path.startswith("/suggest")]


@pytest.mark.parametrize("path", QUESTIONS)
def test_without_a_chain_everything_says_so_and_when_to_come_back(
    tmp_path: Path, path: str
) -> None:
    with client_of(settings_for(tmp_path / "none")) as client:
        for engine in ENGINES:
            response = client.get(f"{path}&engine={engine}")
            problem(response, 503)
            assert int(response.headers["Retry-After"]) >= 1
        for completion in COMPLETIONS:
            problem(client.get(completion), 503)
        problem(client.get("/tip"), 503)
        problem(client.get("/blocks/0"), 404)
        problem(client.get("/transactions/0"), 404)
        assert good(client.get("/blocks")) == {"blocks": [], "next": None}
        reasons = problem(client.get("/health/ready"), 503)["reasons"]
        assert [reason.partition(";")[0] for reason in reasons] == [
            "the chain does not exist yet",
            "no miner is running, so new flights stay pending",
        ]
        assert good(client.get("/health/live"))["status"] == "ok"
    assert not (tmp_path / "none").exists()  # asking writes nothing


def test_a_chain_of_genesis_alone(tmp_path: Path) -> None:
    with client_of(new_chain(tmp_path)) as client:
        assert good(client.get("/tip"))["height"] == 0
        assert good(client.get("/blocks/0"))["block"]["transactions"] == []
        listed = good(client.get("/blocks"))
        assert ([block["height"] for block in listed["blocks"]], listed["next"]) == ([0], None)
        for path in QUESTIONS:
            index, scan = (good(client.get(f"{path}&engine={engine}")) for engine in ENGINES)
            assert index.pop("query") != scan.pop("query")
            assert index == scan
        for path in COMPLETIONS:
            answer = good(client.get(path))
            assert (answer["suggestions"], answer["as_of"]["height"]) == ([], 0)
        problem(client.get("/transactions/0"), 404)


def test_without_an_index_a_scan_still_answers(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    shutil.rmtree(tmp_path / "index")
    with client_of(world.settings) as client:
        for path in QUESTIONS:
            response = client.get(path)
            assert "engine=scan" in problem(response, 503)["detail"]
            assert response.headers["Retry-After"] == "5"
            assert good(client.get(f"{path}&engine=scan"))["as_of"] == world.as_of()
        assert good(client.get("/tip"))["height"] == world.tip


def test_counts_never_go_back_while_flights_are_posted_and_sealed(tmp_path: Path) -> None:
    """Whoever asks any worker `RECENT_S` after an answer has come is told no less."""
    world_in(tmp_path)
    asked = urlencode({"OP_CARRIER_FL_NUM": GOOD["OP_CARRIER_FL_NUM"], "FL_DATE": GOOD["FL_DATE"]})
    paths = ["/tip", *(f"/filter_transactions?{asked}&engine={engine}" for engine in ENGINES)]
    settings, most, lock = settings_for(tmp_path, mine_interval_s=0.05), Counter[str](), Lock()
    with client_of(settings) as one, client_of(settings) as other, at_work(Miner(settings, print)):

        def work(number: int) -> None:
            client = (one, other)[number % 2].application.test_client()
            for turn in range(30):
                if number < 2:
                    good(client.post("/transactions", json=GOOD), 202)
                path, least = paths[turn % 3], most[paths[turn % 3]]
                answer = good(client.get(path))
                count = answer["count"] if "count" in answer else answer["transactions"]
                assert count >= least, path
                time.sleep(RECENT_S)
                with lock:
                    most[path] = max(most[path], count)

        run_together(6, work)
        receipt = good(one.post("/transactions?mode=commit", json=GOOD), 201)
        shown = good(other.get(f"/transactions/{receipt['TRANSACTION_ID']}"))
        assert shown["state"] == "mined"
        assert {good(other.get(path))["count"] for path in paths[1:]} == {61}


def test_a_damaged_block_is_named_and_its_neighbours_still_answer(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    flip(block_file(tmp_path), block_file(tmp_path).stat().st_size // 2)
    with client_of(world.settings) as client:
        responses = [client.get(f"/blocks/{height}") for height in range(world.tip + 1)]
        (damaged,) = [h for h, response in enumerate(responses) if response.status_code != 200]
        assert f"block {damaged} " in problem(responses[damaged], 503)["detail"]
        for path in QUESTIONS:
            assert f"block {damaged} " in problem(client.get(f"{path}&engine=scan"), 503)["detail"]
            good(client.get(path))
        before, pages = world.tip + 1, 0
        known: list[int] = []
        while before > 0:  # page by page, whatever stands on a page
            listed = good(client.get(f"/blocks?before={before}&limit=1"))
            known += [block["height"] for block in listed["blocks"]]
            for block in listed.get("damaged", ()):
                assert block["height"] == damaged
                assert block["hash"] == world.hashes[damaged]
                assert "is damaged" in block["detail"]
            before, pages = before - 1, pages + 1
            following = f"/blocks?before={before}&limit=1" if before else None
            assert listed["next"] == following
        assert known == [height for height in range(world.tip, -1, -1) if height != damaged]
        page = client.get(f"/blocks?before={damaged + 2}&limit=2")
        assert page.headers["Cache-Control"] == "no-cache"  # the disk may be repaired


def test_a_damaged_block_that_anybody_met_is_known_to_ready(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    damaged = 4
    flip_in_block(tmp_path, damaged)

    def reported(client: FlaskClient) -> list[int]:
        refusal = problem(client.get("/health/ready"), 503)
        is_named = any(f"block {damaged} is damaged" in reason for reason in refusal["reasons"])
        assert is_named == bool(refusal["damaged_blocks"])
        heights: list[int] = refusal["damaged_blocks"]
        return heights

    with client_of(world.settings) as client, client_of(world.settings) as other_process:
        assert reported(client) == []
        refused = problem(client.get(f"/blocks/{damaged}"), 503)
        assert refused["damaged_blocks"] == [damaged]
        assert reported(client) == reported(other_process) == [damaged]
        flip_in_block(tmp_path, damaged)  # put right
        good(client.get(f"/blocks/{damaged}"))
        assert reported(client) == reported(other_process) == []


@each_of(
    ("error", "status", "detail"),
    [
        (FlightchainError("something is wrong"), 500, "something is wrong"),
        (ValueError("something is wrong"), 500, "the service failed; its log says why"),
        (OSError("something is wrong"), 503, "the operating system refuses: something is wrong; "),
    ],
)
def test_an_error_that_is_not_the_requests_is_in_the_log(
    error: Exception, status: int, detail: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = Problems(lambda: None).answer(error, {})
    assert (response.status_code, response.mimetype) == (status, "application/problem+json")
    assert response.get_json()["detail"].startswith(detail)
    assert "something is wrong" in caplog.text
    caplog.clear()
