"""ETags, 304, Cache-Control: what a client has need not be sent again, nor computed."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.ledger.answers import Answers
from backend.ledger.ledger import Ledger
from tests.api.worlds import (
    GOOD,
    World,
    client_of,
    good,
    new_chain,
    problem,
    seal,
    settings_for,
    world_in,
)
from tests.cases import each_of

DAYS = {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-12-31"}
QUESTIONS = [
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01",
    "/average_delays?" + urlencode({"OP_CARRIER_AIRLINE_ID": 19393, **DAYS}),
    "/flight_counter?" + urlencode({"ORIGIN_CITY_NAME": "a", "DEST_CITY_NAME": "b", **DAYS}),
]
SETTLED = ["/blocks/3", "/blocks/3?limit=2", "/blocks?before=9", "/transactions/1"] + [
    f"{path}&as_of=4" for path in QUESTIONS
]
AT_THE_TIP = [
    "/tip",
    "/blocks",
    "/coverage",
    "/suggest?field=city",
    "/transactions_pages",
    *QUESTIONS,
    *(f"{path}&engine=scan{as_of}" for path in QUESTIONS for as_of in ("", "&as_of=4")),
]


def asked_again(client: FlaskClient, path: str, condition: str, **headers: str) -> TestResponse:
    return client.get(path, headers={"If-None-Match": condition, **headers})


@each_of("path", SETTLED + AT_THE_TIP)
def test_what_the_client_has_is_not_sent_again(client: FlaskClient, path: str) -> None:
    first = client.get(path)
    etag = first.headers["ETag"]
    assert etag.startswith('"')
    assert etag.endswith('"')
    assert client.get(path).headers["ETag"] == etag
    for condition in (etag, f"W/{etag}", f'"other", {etag}', f'W/"a,b",W/{etag} , "x"', "*", " * "):
        again = asked_again(client, path, condition)
        assert (again.status_code, again.get_data()) == (304, b""), condition
        assert again.headers["ETag"] == etag
        assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
        assert "Content-Type" not in again.headers
    head = client.head(path, headers={"If-None-Match": etag})
    assert (head.status_code, head.get_data(), head.headers["ETag"]) == (304, b"", etag)
    for condition in ('"other"', etag.strip('"'), f'"{etag[1:-2]}"', "", '"*"', 'W/"x", "y"'):
        again = asked_again(client, path, condition)
        assert again.status_code == 200, condition
        assert again.get_data() == first.get_data()


def test_how_long_an_answer_may_be_kept(client: FlaskClient) -> None:
    for path in SETTLED:
        assert client.get(path).headers["Cache-Control"] == "public, max-age=600", path
    for path in AT_THE_TIP:
        assert client.get(path).headers["Cache-Control"] == "no-cache", path
    for path in ("/health/live", "/health/ready", "/blocks/999", "/nothing", "/tip?x=1"):
        assert client.get(path).headers["Cache-Control"] == "no-store", path
    for response in (client.post("/tip"), client.options("/tip"), client.post("/transactions")):
        assert response.headers["Cache-Control"] == "no-store"


def test_a_list_that_reaches_beyond_the_tip_is_asked_for_anew(
    client: FlaskClient, world: World
) -> None:
    for before, expected in (
        (world.tip + 2, "no-cache"),
        (world.tip + 1, "public, max-age=600"),
        (0, "no-cache"),
    ):
        assert client.get(f"/blocks?before={before}").headers["Cache-Control"] == expected


def test_a_pending_transaction_is_not_kept_and_a_mined_one_is(tmp_path: Path) -> None:
    settings = new_chain(tmp_path)
    with client_of(settings) as client:
        receipt = client.post("/transactions", json=GOOD)
        assert (receipt.status_code, receipt.headers["Cache-Control"]) == (202, "no-store")
        where = receipt.headers["Location"]
        pending = client.get(where)
        assert pending.headers["Cache-Control"] == "no-store"
        assert "ETag" not in pending.headers
        assert asked_again(client, where, "*").status_code == 200
        seal(settings, [[]])
        assert good(client.get(where))["state"] == "mined"
        assert client.get(where).headers["Cache-Control"] == "public, max-age=600"


@pytest.mark.parametrize("engine", ["index", "scan"])
@pytest.mark.parametrize("path", QUESTIONS)
def test_a_new_block_ends_what_stood_for_the_tip(tmp_path: Path, path: str, engine: str) -> None:
    world = world_in(tmp_path)
    path = path if engine == "index" else f"{path}&engine=scan"
    with client_of(world.settings) as client:
        before = client.get(path).headers["ETag"]
        assert asked_again(client, path, before).status_code == 304
        seal(world.settings, [[tuple(GOOD.values())]])
        client.get("/tip")
        after = asked_again(client, path, before)
        assert good(after)["as_of"]["height"] == world.tip + 1
        assert after.headers["ETag"] != before
        settled = f"{path}&as_of={world.tip}"
        assert good(client.get(settled))["as_of"]["height"] == world.tip


@pytest.mark.parametrize("path", QUESTIONS)
def test_nothing_is_asked_for_a_304(
    client: FlaskClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    etags = {p: client.get(p).headers["ETag"] for p in (path, f"{path}&as_of=5", "/blocks/2")}

    def never(*arguments: object, **more: object) -> None:
        raise AssertionError("it was asked")

    monkeypatch.setattr(Answers, "answer", never)
    monkeypatch.setattr(Ledger, "encoded_block", never)
    for asked, etag in etags.items():
        assert asked_again(client, asked, etag).status_code == 304


@pytest.mark.parametrize("condition", ["*", '"x"'])
def test_an_error_is_an_error_whatever_the_condition(client: FlaskClient, condition: str) -> None:
    for path, status in {
        "/tip?x=1": 400,
        "/blocks/999": 404,
        "/flight_counter": 400,
        QUESTIONS[0] + "&as_of=999": 404,
        QUESTIONS[0] + "&engine=other": 400,
    }.items():
        problem(asked_again(client, path, condition), status)


def test_another_chain_in_the_same_folder_has_other_tags(tmp_path: Path) -> None:
    etags = []
    for number in (1, 2):
        settings = settings_for(tmp_path / str(number))
        seal(settings, [[tuple({**GOOD, "OP_CARRIER_FL_NUM": number}.values())]])
        with client_of(settings) as client:
            etags.append([client.get(p).headers["ETag"] for p in ("/blocks/1", "/transactions/0")])
    assert not set(etags[0]) & set(etags[1])
