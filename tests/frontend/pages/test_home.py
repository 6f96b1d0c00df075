"""The home page, and what all pages have in common."""

import gzip
import re

from flask.testing import FlaskClient

from tests.api.worlds import World


def test_it_offers_the_three_questions_and_says_where_the_ledger_stands(
    pages: FlaskClient, world: World
) -> None:
    page = pages.get("/").get_data(as_text=True)
    for action in ("/filter_transactions", "/average_delays", "/flight_counter", "/search"):
        assert f'action="{action}"' in page
    assert f'<a href="/blocks/{world.tip}">{world.tip}</a>' in page
    assert f"{len(world.transactions):,}" in page


def test_the_part_that_renews_itself_is_the_same_part(pages: FlaskClient) -> None:
    fragment = pages.get("/standing").get_data(as_text=True)
    assert fragment.lstrip().startswith("<section")
    assert "data-refresh" in fragment
    assert pages.get("/index.json").get_json().keys() == {"tip", "blocks"}


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
    text = page.get_data(as_text=True)
    assert "The ledger does not answer" in text
    assert "Connection refused" in text
    twin = lonely_pages.get("/index.json")
    assert twin.status_code == 503
    assert twin.headers["Content-Type"] == "application/problem+json"


def test_a_page_that_is_none_says_so_in_the_same_layout(pages: FlaskClient) -> None:
    page = pages.get("/nothing")
    assert page.status_code == 404
    assert "There is no such page" in page.get_data(as_text=True)
    assert 'class="brand"' in page.get_data(as_text=True)


def test_a_page_says_how_long_it_took_and_how_much_of_that_it_waited(pages: FlaskClient) -> None:
    for path, waits in (("/blocks", True), ("/about", False)):
        timing = pages.get(path).headers["Server-Timing"]
        found = re.fullmatch(r"total;dur=([\d.]+), backend;dur=([\d.]+)", timing)
        assert found is not None
        total_ms, waited_ms = map(float, found.groups())
        assert (0 < waited_ms < total_ms) if waits else (waited_ms == 0 < total_ms)
