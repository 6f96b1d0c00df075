"""A transaction in a browser, pending and mined."""

import re
from pathlib import Path

from flask.testing import FlaskClient

from frontend.questions import flights_of_day
from tests.api.processes import Service
from tests.api.worlds import GOOD, Json, World, client_of, new_chain, transaction_of
from tests.frontend.pages.reading import link, pages_over, source, table, text
from tests.http_servers import served_in_a_thread
from tests.submitting import sealing


def test_a_page_shows_every_field_with_its_meaning(pages: FlaskClient, world: World) -> None:
    flight = world.transactions[45]
    page, bare = source(pages, "/transactions/45"), text(pages, "/transactions/45")
    shown = transaction_of(flight)
    rows = dict(re.findall(r"<code>(\w+)</code></th>\s*<td>([^<]*)</td><td>[a-z]", page))
    assert rows.keys() == shown.keys()
    for name in ("TRANSACTION_ID", "YEAR", "ORIGIN", "DEST_CITY_NAME", "OP_CARRIER_FL_NUM"):
        assert rows[name] == str(shown[name])
    departed = flight["DEP_TIME"]
    assert rows["DEP_TIME"] == f"{departed[:2]}:{departed[2:]}"
    assert rows["DAY_OF_WEEK"].startswith(f"{flight['DAY_OF_WEEK']} (")
    assert rows["CANCELLED"] == "No"
    assert rows["ORIGIN_AIRPORT_ID"] == (str(flight["ORIGIN_AIRPORT_ID"] or "–"))
    assert flights_of_day.outcome(flight) in bare


def test_it_links_block_neighbours_and_flight(pages: FlaskClient, world: World) -> None:
    flight = world.transactions[45]
    page = source(pages, "/transactions/45")
    height = flight["BLOCK_HEIGHT"]
    assert link(page, f"block {height}") == f"/blocks/{height}"
    assert world.hashes[height] in page
    assert link(page, "Transaction 44") == "/transactions/44"
    assert link(page, "Transaction 46") == "/transactions/46"
    (address,) = re.findall(r'class="button quiet" href="(/filter[^"]+)"', page)
    assert 'href="/transactions/45"' in source(pages, address)


def test_the_first_and_the_last_have_one_neighbour(pages: FlaskClient, world: World) -> None:
    last = len(world.transactions) - 1
    first_page = source(pages, "/transactions/0")
    assert link(first_page, "Transaction -1") == ""
    assert link(first_page, "Transaction 1") == "/transactions/1"
    last_page = source(pages, f"/transactions/{last}")
    assert link(last_page, f"Transaction {last + 1}") == ""
    assert "This is the newest transaction." in last_page


def test_the_title_says_which_flight_it_is(pages: FlaskClient, world: World) -> None:
    flight = world.transactions[0]
    title = rf"<title>Transaction 0: \w\w {flight['OP_CARRIER_FL_NUM']}, "
    ends = f"{flight['ORIGIN']} to {flight['DEST']}, {flight['FL_DATE']}"
    assert re.search(title + ends, source(pages, "/transactions/0"))


def test_the_twins_hold_the_same(pages: FlaskClient, world: World, service: Service) -> None:
    assert pages.get("/transactions/45.json").get_json() == service.json("/transactions/45")
    (row,) = table(pages, "/transactions/45.csv")
    flight = {**world.transactions[45], "state": "mined"}
    assert row == {n: "" if value is None else str(value) for n, value in flight.items()}


# --- pending


def test_a_pending_transaction_turns_to_mined_by_itself(tmp_path: Path) -> None:
    settings = new_chain(tmp_path)
    with client_of(settings) as service, served_in_a_thread(service.application) as url:
        pages = pages_over(url)
        for expected in range(2):
            receipt: Json = service.post("/transactions", json=GOOD).get_json()
            assert receipt["TRANSACTION_ID"] == expected
        page = source(pages, "/transactions/0")
        assert '<span class="state pending">Pending</span>' in page
        assert 'data-refresh="/transactions/0/state"' in page
        assert "No miner is running" in page
        assert link(page, "Transaction 1") == "/transactions/1"  # which is pending, too
        assert link(page, "Transaction 2") == ""
        (row,) = table(pages, "/transactions/0.csv")
        assert (row["state"], row["BLOCK_HEIGHT"]) == ("pending", "")
        assert row["ORIGIN"] == GOOD["ORIGIN"]
        before = pages.get("/transactions/0/state").text
        assert "data-refresh" in before

        with sealing(settings) as sealer:
            sealer.seal_pending()
        after = pages.get("/transactions/0/state").text
        assert '<a href="/blocks/1">block 1</a>' in after
        assert "data-refresh" not in after
        assert 'data-say="Transaction 0 is mined, in block 1"' in after
