"""The chain in a browser, against the chain itself."""

import re
import time

import pytest
from flask.testing import FlaskClient

from backend.trust.log import notes
from backend.trust.log.notes import COSIGNATURE, Note
from backend.trust.log.secret_keys import SecretKey
from frontend.filters import counted
from tests.api.processes import Service
from tests.api.worlds import Json, World, transaction_of
from tests.frontend.pages.reading import ids_on, link, source, table, text

EMPTY, LARGEST = 3, 4  # heights of a block without transactions, and of one with 59


def in_block(world: World, height: int) -> list[Json]:
    return [flight for flight in world.transactions if flight["BLOCK_HEIGHT"] == height]


def heights_on(page: str) -> list[int]:
    return [int(height) for height in re.findall(r'class="n"><a href="/blocks/(\d+)"', page)]


# --- the list


def test_the_list_can_be_walked_down_and_up_again(pages: FlaskClient, world: World) -> None:
    every = list(range(world.tip, -1, -1))
    heights, address, page = [], "/blocks", ""
    while address:
        page = source(pages, address)
        heights += heights_on(page)
        address = link(page, "Older")
    assert heights == every
    assert heights_on(page)[-1] == 0
    assert '<th scope="col" class="n">Height</th><th scope="col">Sealed</th>' in page
    back = heights_on(source(pages, link(page, "Newer")))
    assert back[0] == world.tip
    assert link(source(pages, "/blocks"), "Newer") == ""
    middle = heights_on(source(pages, link(source(pages, "/blocks?before=3"), "Newer")))
    assert middle == list(range(27, 2, -1))


def test_a_row_says_what_a_block_holds(pages: FlaskClient, world: World) -> None:
    page = text(pages, f"/blocks?before={LARGEST + 1}")
    held = in_block(world, LARGEST)
    first, last = held[0]["TRANSACTION_ID"], held[-1]["TRANSACTION_ID"]
    assert f"{LARGEST} just now 59 {first} to {last} {world.hashes[LARGEST][:12]}…" in re.sub(
        r"\d+ (second|minute)s? ago", "just now", page
    )
    assert re.search(rf" {EMPTY} [^…]* 0 empty {world.hashes[EMPTY][:12]}…", page)
    assert re.search(rf" 0 [^…]* 0 genesis {world.hashes[0][:12]}…", page)
    assert "Blocks 4 to 0 · Flightchain" in page


@pytest.mark.parametrize("address", ["/blocks", "/strip"])
def test_the_newest_blocks_are_filled_by_their_flights(
    pages: FlaskClient, world: World, address: str
) -> None:
    page = source(pages, address)
    strip = page.partition('<ol class="strip"')[2].partition("</ol>")[0]
    blocks = re.findall(r'<a href="/blocks/(\d+)".*?height="([\d.]+)%"', strip)
    heights = range(world.tip - 11, world.tip + 1)
    assert blocks == [(str(h), str(len(in_block(world, h)) / 10)) for h in heights]
    names = re.findall(r'title="([^"]*)"', strip)
    assert names == [counted(len(in_block(world, h)), "flight") for h in heights]
    assert "0 pending<br><small>waits for a flight" in strip.partition('class="next"')[2]
    assert 'data-refresh="/strip"' in page


def test_the_twins_of_the_list_hold_the_same(pages: FlaskClient, world: World) -> None:
    twin = pages.get("/blocks.json?before=9").get_json()
    assert [block["hash"] for block in twin["blocks"]] == world.hashes[8::-1]
    assert twin["next"] is None
    rows = table(pages, "/blocks.csv?before=9")
    assert [row["hash"] for row in rows] == world.hashes[8::-1]
    following = pages.get("/blocks.json").get_json()["next"]
    assert pages.get(following).get_json()["blocks"][-1]["height"] == 0


def test_a_height_or_a_hash_leads_to_its_block(pages: FlaskClient, world: World) -> None:
    for query in ("height=5", "height=+5+", "height=0,005", f"hash={world.hashes[5]}"):
        answer = pages.get(f"/blocks?{query}")
        assert answer.status_code == 302, query
        assert answer.headers["Location"] == "/blocks/5", query


@pytest.mark.parametrize("height", ["99999", "abc", "-1", "1e3", "9" * 30, "٣"])
def test_a_missing_height_has_a_message(pages: FlaskClient, world: World, height: str) -> None:
    answer = pages.get("/blocks", query_string={"height": height})
    assert answer.status_code == 404
    page = answer.text
    assert 'id="height-error"' in page
    assert f'value="{height}"' in page
    assert heights_on(page)[0] == world.tip


# --- one block


def test_a_block_shows_header_and_flights(
    pages: FlaskClient, world: World, service: Service
) -> None:
    page = source(pages, f"/blocks/{LARGEST}")
    block = service.json(f"/blocks/{LARGEST}")["block"]
    for name, value in block.items():
        if name not in {"transactions", "timestamp"}:
            assert str(value) in page, name
        if name not in {"transactions", "hash"}:
            assert f"<code>{name}</code>" in page, name
    assert link(page, f"Block {LARGEST - 1}") == f"/blocks/{LARGEST - 1}"
    assert link(page, f"Block {LARGEST + 1}") == f"/blocks/{LARGEST + 1}"
    assert "<title>Block 4: 59 flights · Flightchain</title>" in page
    held = [flight["TRANSACTION_ID"] for flight in in_block(world, LARGEST)]
    assert ids_on(page) == held[:50]
    following = link(page, "51–59").partition("#")[0]
    assert ids_on(source(pages, following)) == held[50:]


def test_a_block_offers_to_check_its_flights_too(pages: FlaskClient) -> None:
    address = f'data-transactions="/blocks/{LARGEST}.json"'
    page = source(pages, f"/blocks/{LARGEST}")
    assert "Check its flights as well" in page
    assert address not in page
    page = source(pages, f"/blocks/{LARGEST}?check=transactions")
    assert "Check its flights as well" not in page
    assert address in page
    assert "Check its flights as well" not in source(pages, f"/blocks/{EMPTY}")
    assert pages.get(f"/blocks/{LARGEST}?check=all").status_code == 400


def test_the_twins_are_the_whole_block(pages: FlaskClient, world: World) -> None:
    twin = pages.get(f"/blocks/{LARGEST}.json").get_json()
    assert twin["block"]["transactions"] == list(map(transaction_of, in_block(world, LARGEST)))
    rows = table(pages, f"/blocks/{LARGEST}.csv")
    expected = [
        {name: "" if value is None else str(value) for name, value in flight.items()}
        for flight in in_block(world, LARGEST)
    ]
    assert rows == expected
    assert table(pages, "/blocks/0.csv") == []


def test_no_text_in_an_address_breaks_a_page(pages: FlaskClient) -> None:
    for address in ("/", "/blocks", "/filter_transactions", "/blocks/4", "/transactions/1"):
        answer = pages.get(address, environ_overrides={"QUERY_STRING": "\xff"})
        assert answer.status_code == 200, address
    query = "OP_CARRIER_FL_NUM=\xc3\xa91+%C3%A9&FL_DATE=2015-01-01"
    answer = pages.get("/filter_transactions", environ_overrides={"QUERY_STRING": query})
    assert answer.status_code == 400
    assert 'value="é1 é"' in answer.text


def test_the_list_says_who_has_cosigned_the_log(pages: FlaskClient, world: World) -> None:
    folder = world.settings.folder
    assert "have cosigned" not in text(pages, "/blocks")
    note = notes.parse((folder / "checkpoint").read_bytes())
    witness = SecretKey("example.org/witness", bytes(32), COSIGNATURE)
    older = note.text.replace(f"\n{world.tip + 1}\n", "\n9\n")
    cosigned, shown = folder / "cosigned", []
    try:
        for signed in (note.text, older):
            signature = witness.cosignature(signed, int(time.time()))
            cosigned.write_bytes(str(Note(signed, (*note.signatures, signature))).encode())
            shown.append(text(pages, "/blocks"))
    finally:
        cosigned.unlink()
    assert re.search(
        rf"have cosigned the log up to block {world.tip}: example.org/witness ?, ", shown[0]
    )
    assert "have cosigned" not in shown[1]
