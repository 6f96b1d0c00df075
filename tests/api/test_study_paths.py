"""The paths of the study's service, as its load scripts use them."""

from functools import partial
from pathlib import Path

from flask.testing import FlaskClient

from tests.api.worlds import (
    GOOD,
    World,
    answer_of,
    client_of,
    good,
    new_chain,
    problem,
    questions_about,
    transaction_of,
)


def test_transactions_are_asked_by_number_and_date(client: FlaskClient, world: World) -> None:
    route, asked = next(iter(questions_about(world.transactions[0]).items()))
    answer = good(client.get("/transactions", query_string=asked))
    assert answer.items() >= answer_of(route, world.transactions, asked).items()
    assert answer == good(client.get("/filter_transactions", query_string=asked))


def test_pages_hold_every_mined_transaction_once(client: FlaskClient, world: World) -> None:
    everything = [transaction_of(flight) for flight in world.transactions]
    for per_page in (7, 60, 1000):
        collected = []
        for page in range(-(-len(everything) // per_page)):
            asked = f"/transactions_pages?page={page}&per_page={per_page}"
            collected += good(client.get(asked))["transactions"]
        assert collected == everything
        beyond = client.get(f"/transactions_pages?page={page + 1}&per_page={per_page}")
        detail = f"page {page + 1} is beyond the last one, with {per_page:,} transactions a page"
        assert problem(beyond, 404)["detail"] == detail
    assert len(good(client.get("/transactions_pages"))["transactions"]) == 100


def test_a_new_transaction_is_durable_and_answered_as_the_study_did(tmp_path: Path) -> None:
    as_text = {name: str(value) for name, value in GOOD.items()}
    with client_of(new_chain(tmp_path)) as client:
        receipt = good(client.post("/new_transaction", json=as_text), 201)
        assert (receipt["TRANSACTION_ID"], receipt["state"]) == (0, "pending")
        problem(client.post("/new_transaction", json={"YEAR": 2008}), 422)
        assert good(client.get("/tip"))["pending"] == 1


def test_a_new_transaction_that_is_sent_again_with_its_key_is_the_same(tmp_path: Path) -> None:
    with client_of(new_chain(tmp_path)) as client:
        post = partial(client.post, "/new_transaction", headers={"Idempotency-Key": "k"})
        first, again = (good(post(json=GOOD), 201) for _ in "ab")
        assert first["TRANSACTION_ID"] == again["TRANSACTION_ID"]
        problem(post(json={**GOOD, "DEP_DELAY": 9}), 422, field="Idempotency-Key")
        assert good(client.get("/tip"))["pending"] == 1


def test_mining_cannot_be_asked_for(client: FlaskClient) -> None:
    response = client.get("/mine")
    problem(response, 405)
    assert response.headers["Allow"]
