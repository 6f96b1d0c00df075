"""The search: what of the meanings of a text exists, and where it leads."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from backend.questions.carriers import code_of as code_of_carrier
from frontend import words
from frontend.backend_client import Backend
from frontend.search.finding import Finder
from frontend.search.meanings import Flight
from tests.api.worlds import Json, World
from tests.frontend.search.test_cities import PLACES


@pytest.fixture
def flight(world: World) -> Json:
    return world.transactions[120]


Look = Callable[[str], tuple[int, str, dict[str, list[str]]]]


@pytest.fixture
def look(pages: FlaskClient) -> Look:
    """Status, path and query of where a search leads."""

    def search(text: str) -> tuple[int, str, dict[str, list[str]]]:
        answer = pages.get("/search", query_string={"q": text})
        place = urlsplit(answer.headers.get("Location", ""))
        return answer.status_code, place.path, parse_qs(place.query)

    return search


def code_of(flight: Json) -> str:
    return code_of_carrier(flight["OP_CARRIER_AIRLINE_ID"])


def test_a_flight_leads_to_its_days_and_with_a_day_to_what_happened(
    look: Look, flight: Json
) -> None:
    name = f"{code_of(flight)} {flight['OP_CARRIER_FL_NUM']}"
    question = {
        "OP_CARRIER_FL_NUM": [str(flight["OP_CARRIER_FL_NUM"])],
        "OP_CARRIER_AIRLINE_ID": [str(flight["OP_CARRIER_AIRLINE_ID"])],
    }
    assert look(name) == (302, "/filter_transactions", question)
    day = {"FL_DATE": [flight["FL_DATE"]]}
    assert look(f"{name} {flight['FL_DATE']}") == (302, "/filter_transactions", question | day)
    assert look(f"{name} 2033-01-01")[0] == 200


def test_a_route_leads_to_its_flights(look: Look, flight: Json, world: World) -> None:
    days = [each["FL_DATE"] for each in world.transactions]
    question = {
        "ORIGIN_CITY_NAME": [flight["ORIGIN_CITY_NAME"]],
        "DEST_CITY_NAME": [flight["DEST_CITY_NAME"]],
        "INITIAL_DATE": [min(days)],
        "FINAL_DATE": [max(days)],
    }
    for text in (
        f"{flight['ORIGIN']}-{flight['DEST']}",
        f"{flight['ORIGIN'].lower()} {flight['DEST'].lower()}",
        f"{flight['ORIGIN_CITY_NAME']} to {flight['DEST_CITY_NAME']}",
    ):
        assert look(text) == (302, "/flight_counter", question), text
    day = {name: [flight["FL_DATE"]] for name in ("INITIAL_DATE", "FINAL_DATE")}
    text = f"{flight['ORIGIN']}-{flight['DEST']} {flight['FL_DATE']}"
    assert look(text) == (302, "/flight_counter", question | day)


def test_what_there_is_one_of_is_shown_at_once(
    pages: FlaskClient, look: Look, world: World, flight: Json
) -> None:
    assert look(world.hashes[7].upper()) == (302, "/blocks/7", {})
    for shown in (words.short(world.hashes[7]), world.hashes[7][:8]):
        found = pages.get("/search.json", query_string={"q": shown}).get_json()["possibilities"]
        assert "/blocks/7" in [each["address"] for each in found]
    assert look("block 7") == (302, "/blocks/7", {})
    assert look("transaction 7") == (302, "/transactions/7", {})
    assert look(flight["FL_DATE"]) == (302, f"/days/{flight['FL_DATE']}", {})
    last = len(world.transactions) - 1  # no block has that height
    assert look(f"#{last}") == (302, f"/transactions/{last}", {})


def test_what_may_be_several_things_is_a_list_of_these(pages: FlaskClient, world: World) -> None:
    number = 7
    found = pages.get("/search.json", query_string={"q": str(number)}).get_json()
    addresses = [each["address"] for each in found["possibilities"]]
    assert addresses[:2] == [f"/transactions/{number}", f"/blocks/{number}"]
    page = pages.get("/search", query_string={"q": str(number)})
    assert page.status_code == 200
    text = page.get_data(as_text=True)
    assert f">Transaction {number}</a>" in text
    assert f">Block {number}</a>" in text
    assert world.transactions[number]["ORIGIN_CITY_NAME"] in text


def test_a_number_that_flights_have_is_a_flight_number(pages: FlaskClient, flight: Json) -> None:
    number = flight["OP_CARRIER_FL_NUM"]
    found = pages.get("/search.json", query_string={"q": str(number)}).get_json()
    addresses = [each["address"] for each in found["possibilities"]]
    assert f"/filter_transactions?OP_CARRIER_FL_NUM={number}" in addresses


class CommonNumbers(Backend):
    """A backend that has more common numbers to suggest than 33, which flew on one day."""

    def __init__(self, day: str) -> None:
        super().__init__("http://127.0.0.1:1")
        self._day = day

    def get(self, path: str, parameters: Mapping[str, Any] | None = None) -> Json:
        given = dict(parameters or {})
        if path == "/suggest":
            return {"suggestions": [{"value": 3300 + n, "carriers": []} for n in range(50)]}
        assert (path, given["OP_CARRIER_FL_NUM"]) == ("/filter_transactions", 33)
        return {"count": int(given["FL_DATE"] == self._day)}


@pytest.mark.parametrize(("day", "is_found"), [("2013-12-05", True), ("2013-11-05", False)])
def test_a_number_that_is_rare_among_many_is_found_on_the_last_days(
    day: str, is_found: bool
) -> None:
    found = Finder(CommonNumbers(day), PLACES).found([Flight(33)])
    assert bool(found) == is_found


def test_nothing_found_gives_suggestions_and_examples_that_find_something(
    pages: FlaskClient, look: Look, flight: Json
) -> None:
    city = flight["ORIGIN_CITY_NAME"]
    typo = city[:3] + city[4:]
    found = pages.get("/search.json", query_string={"q": typo}).get_json()
    assert found["possibilities"] == []
    assert f"From {city}" in {each["label"] for each in found["suggestions"]}
    assert len(found["examples"]) >= 5
    for example in found["examples"]:
        assert look(example)[0] in {200, 302}
        hit = pages.get("/search.json", query_string={"q": example}).get_json()
        assert hit["possibilities"], example
    assert "Nothing is called" in pages.get("/search", query_string={"q": typo}).get_data(True)


def test_carriers_and_flight_numbers_are_suggested(pages: FlaskClient, flight: Json) -> None:
    code = code_of(flight)
    found = pages.get("/search.json", query_string={"q": code}).get_json()["suggestions"]
    assert any(f"({code})" in each["label"] for each in found)
    assert all("INITIAL_DATE=" in each["address"] for each in found)
    page = pages.get("/search", query_string={"q": "Southwest to nowhere"})
    assert page.status_code == 200


@pytest.mark.parametrize("text", ["☃", "<script>alert(1)</script>", "%", "' OR 1=1", "a" * 5000])
def test_any_text_is_answered_with_a_page(pages: FlaskClient, text: str) -> None:
    page = pages.get("/search", query_string={"q": text})
    assert page.status_code == 200
    assert "<script>alert" not in page.get_data(as_text=True)


def test_nothing_asked_is_a_page_with_examples(pages: FlaskClient) -> None:
    page = pages.get("/search").get_data(as_text=True)
    assert "<h1>Search the ledger</h1>" in page
    assert 'href="/search?q=' in page
