"""The home page, and what all pages have in common."""

import gzip
import re
import time

import pytest
from flask.testing import FlaskClient

from frontend.backend_client import Backend
from frontend.errors import Refused
from tests.api.worlds import Json, World
from tests.frontend.fake_backend import Answer, answering
from tests.frontend.pages.reading import pages_over, text


def test_it_offers_the_questions_and_shows_the_ledger(pages: FlaskClient, world: World) -> None:
    page = pages.get("/").text
    for action in ("/filter_transactions", "/average_delays", "/flight_counter", "/search"):
        assert f'action="{action}"' in page
    assert f'<a href="/blocks/{world.tip}">{world.tip}</a>' in page
    assert f"{len(world.transactions):,}" in page


def standing_at(height: int, more: Json, pending: int = 0, newest: int = 0) -> Answer:
    """A backend whose next block is due in 35 s. newest: flights in the newest block."""
    block = {"height": height, "hash": "0" * 64, "timestamp": 0, "transaction_count": newest}
    due = round(1000 * time.time()) + 35_000
    tip = {**block, "transactions": 5 * height, "pending": pending, "next_block_at": due}
    blocks, ready = {"blocks": [block], "next": None}, {"status": "ready"}
    answers = {"/tip": tip, "/blocks": blocks, "/health/ready": ready, **more}
    return lambda path, _: answers[path]


@pytest.mark.parametrize(
    ("pending", "newest", "sentence"),
    [
        (0, 5, "Next block When a flight is added"),
        (3, 5, "Next block in 3"),
        (0, 0, "Next block in 3"),  # the miner is set to seal empty blocks
    ],
)
def test_a_next_block_is_promised_if_it_comes(pending: int, newest: int, sentence: str) -> None:
    with answering(standing_at(1, {}, pending, newest)) as url:
        pages = pages_over(url)
        assert sentence in text(pages, "/standing")


def test_an_empty_ledger_has_no_list_of_carriers(pages: FlaskClient) -> None:
    empty: Json = {
        "flights": 0,
        "first_date": None,
        "last_date": None,
        "carriers": [],
        "airports": [],
    }
    with answering(standing_at(0, {"/coverage": empty})) as url:
        page = text(pages_over(url), "/")
    assert "There are no flights in this ledger yet." in page
    assert "Carriers in the ledger" not in page
    assert "Carriers in the ledger" in text(pages, "/")


def test_every_answer_forbids_what_no_page_needs(pages: FlaskClient) -> None:
    for path in ("/", "/nothing", "/static/style.css", "/index.json"):
        headers = pages.get(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"], path
        assert "unsafe" not in headers["Content-Security-Policy"], path
        assert headers["X-Content-Type-Options"] == "nosniff", path


def test_pages_and_styles_are_compressed_for_those_who_ask(pages: FlaskClient) -> None:
    for path in ("/", "/static/style.css"):
        plain = pages.get(path)
        small = pages.get(path, headers={"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in plain.headers
        assert small.headers["Content-Encoding"] == "gzip", path
        if path != "/":  # which says how old things are
            assert gzip.decompress(small.get_data()) == plain.get_data()
        assert "Accept-Encoding" in plain.headers["Vary"]


def test_a_backend_that_is_away_is_said_in_words(lonely_pages: FlaskClient) -> None:
    page = lonely_pages.get("/")
    assert page.status_code == 503
    assert page.headers["Retry-After"] == "5"
    source = page.text
    assert "The ledger does not answer" in source
    assert "Connection refused" in source
    twin = lonely_pages.get("/index.json")
    assert twin.status_code == 503
    assert twin.headers["Content-Type"] == "application/problem+json"


def test_who_is_to_wait_is_told_how_long_the_ledger_says(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> Json:
        raise Refused({"detail": "the index is being rebuilt"}, 503, 17)

    monkeypatch.setattr(Backend, "get", busy)
    for path in ("/blocks/1", "/blocks/1.json"):
        answer = pages.get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "17")


def test_a_page_says_how_long_it_took_and_how_much_of_that_it_waited(pages: FlaskClient) -> None:
    for path, waits in (("/blocks", True), ("/about", False)):
        timing = pages.get(path).headers["Server-Timing"]
        match = re.fullmatch(r"total;dur=([\d.]+), backend;dur=([\d.]+)", timing)
        assert match is not None
        total_ms, waited_ms = map(float, match.groups())
        assert (0 < waited_ms < total_ms) if waits else (waited_ms == 0 < total_ms)
