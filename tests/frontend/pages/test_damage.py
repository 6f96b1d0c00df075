"""One damaged block: it is shown as damaged, everything else goes on, and home says so."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from frontend.backend_client import Backend
from tests.api.worlds import Json, World, world_in
from tests.frontend.pages.reading import pages_of, table, text
from tests.storage.chains import flip_in_block

DAMAGED = 4


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world in which a byte of block `DAMAGED` is another one."""
    world = world_in(tmp_path_factory.mktemp("damaged"))
    flip_in_block(world.settings.folder, DAMAGED)
    return world


@pytest.fixture(scope="module")
def pages(world: World) -> Iterator[FlaskClient]:
    """Pages over a service without a scrub, so that only damage that visitors meet is known."""
    with pages_of(world.settings.folder) as pages:
        yield pages


def test_a_damaged_block_shows_what_is_known(pages: FlaskClient, world: World) -> None:
    page = text(pages, f"/blocks/{DAMAGED}", 503)
    assert f"Block {DAMAGED} is damaged" in page
    assert world.hashes[DAMAGED] in page
    held = [flight for flight in world.transactions if flight["BLOCK_HEIGHT"] == DAMAGED]
    ids = f"{held[0]['TRANSACTION_ID']} to {held[-1]['TRANSACTION_ID']}"
    assert f"Flights {len(held)} Transaction ids {ids}" in page
    source = pages.get(f"/blocks/{DAMAGED}").text
    for neighbour in (DAMAGED - 1, DAMAGED + 1):
        assert f'<a href="/blocks/{neighbour}"' in source
    form = pages.get(f"/blocks?height={DAMAGED}")
    assert form.headers["Location"] == f"/blocks/{DAMAGED}"
    twin = pages.get(f"/blocks/{DAMAGED}.json")
    assert (twin.status_code, twin.mimetype) == (503, "application/problem+json")
    for answer in (twin, pages.get(f"/blocks/{DAMAGED}/none")):
        assert answer.headers["Cache-Control"] == "no-store"


def test_no_block_above_the_newest_is_said_to_protect_it(
    pages: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, protected = Backend.get, "because the block above contains its hash."
    assert protected in text(pages, f"/blocks/{DAMAGED}", 503)

    def without_those_above(self: Backend, path: str, parameters: Any = None) -> Json:
        answer = ask(self, path, parameters)
        if path == "/blocks":
            answer["blocks"] = [row for row in answer["blocks"] if row["height"] < DAMAGED]
        return answer

    monkeypatch.setattr(Backend, "get", without_those_above)
    page = text(pages, f"/blocks/{DAMAGED}", 503)
    assert "This is the newest block." in page
    assert protected not in page


@pytest.mark.parametrize("height", [DAMAGED - 1, DAMAGED + 1])
def test_its_neighbours_name_it_damaged(pages: FlaskClient, world: World, height: int) -> None:
    for query in ("", "?check=transactions"):
        page = text(pages, f"/blocks/{height}{query}")
        assert world.hashes[height] in page
        assert f"Block {DAMAGED} (damaged)" in page


def test_the_list_of_blocks_goes_on(pages: FlaskClient, world: World) -> None:
    page = text(pages, f"/blocks?before={DAMAGED + 2}")
    assert f" {DAMAGED} damaged " in page
    assert f"{world.hashes[DAMAGED][:12]}…" in page
    rows = table(pages, f"/blocks.csv?before={DAMAGED + 2}")
    assert [int(row["height"]) for row in rows] == list(range(DAMAGED + 1, -1, -1))
    assert rows[1]["hash"] == world.hashes[DAMAGED]
    assert rows[1]["nonce"] == ""


def test_home_says_so_once_it_was_met(pages: FlaskClient) -> None:
    pages.get(f"/blocks/{DAMAGED}")
    for address in ("/", "/standing"):
        page = text(pages, address)
        assert f"A block is damaged: block {DAMAGED} . Other blocks can still be read." in page
    assert pages.get("/index.json").get_json()["damaged"] == [DAMAGED]


def test_every_other_question_and_search_is_answered(pages: FlaskClient, world: World) -> None:
    inside = next(flight for flight in world.transactions if flight["BLOCK_HEIGHT"] == DAMAGED)
    number, day = inside["OP_CARRIER_FL_NUM"], inside["FL_DATE"]
    asked = f"/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"
    assert pages.get(asked).status_code == 200
    twin = pages.get(f"/search.json?q={DAMAGED}").get_json()["possibilities"]
    assert f"/blocks/{DAMAGED}" in [match["address"] for match in twin]
    twin = pages.get(f"/search.json?q={world.hashes[DAMAGED]}").get_json()["possibilities"]
    assert [match["shows"] for match in twin] == ["it is damaged"]
    page = text(pages, f"/transactions/{inside['TRANSACTION_ID']}", 503)
    assert "A block is damaged" in page
    assert f"Block {DAMAGED} is damaged" in page
