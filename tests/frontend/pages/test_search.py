"""The search: what of the meanings of a text exists, and where it leads."""

import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from backend.questions.carriers import code_of as code_of_carrier
from frontend import filters
from frontend.search.examples import UNTIL_KNOWN
from tests.api.worlds import Json, World


@pytest.fixture
def flight(world: World) -> Json:
    return world.transactions[120]


Look = Callable[[str], tuple[int, str, dict[str, list[str]]]]


@pytest.fixture
def look(pages: FlaskClient) -> Look:
    """Return a function that searches for a text: status, path and query of where it leads."""

    def search(text: str) -> tuple[int, str, dict[str, list[str]]]:
        answer = pages.get("/search", query_string={"q": text})
        place = urlsplit(answer.headers.get("Location", ""))
        return answer.status_code, place.path, parse_qs(place.query)

    return search


def code_of(flight: Json) -> str:
    return code_of_carrier(flight["OP_CARRIER_AIRLINE_ID"])


def test_a_flight_leads_to_its_report_or_its_status(look: Look, flight: Json) -> None:
    name = f"{code_of(flight)} {flight['OP_CARRIER_FL_NUM']}"
    question = {
        "OP_CARRIER_FL_NUM": [str(flight["OP_CARRIER_FL_NUM"])],
        "OP_CARRIER_AIRLINE_ID": [str(flight["OP_CARRIER_AIRLINE_ID"])],
    }
    assert look(name) == (302, "/report", question)
    day = {"FL_DATE": [flight["FL_DATE"]]}
    assert look(f"{name} {flight['FL_DATE']}") == (302, "/filter_transactions", question | day)
    assert look(f"{name} 2033-01-01")[0] == 200


def test_a_single_match_is_shown(
    pages: FlaskClient, look: Look, world: World, flight: Json
) -> None:
    assert look(world.hashes[7].upper()) == (302, "/blocks/7", {})
    for shown in (filters.short(world.hashes[7]), world.hashes[7][:8]):
        twin = pages.get("/search.json", query_string={"q": shown}).get_json()["possibilities"]
        assert "/blocks/7" in [match["address"] for match in twin]
    assert look("block 7") == (302, "/blocks/7", {})
    for text in ("tip", "the tip", "latest block", "Newest block"):
        assert look(text) == (302, f"/blocks/{world.tip}", {})
    assert look("transaction 7") == (302, "/transactions/7", {})
    assert look(flight["FL_DATE"]) == (302, f"/days/{flight['FL_DATE']}", {})
    last = len(world.transactions) - 1  # no block has that height
    assert look(f"#{last}") == (302, f"/transactions/{last}", {})


def test_what_may_be_several_things_is_a_list_of_these(pages: FlaskClient, world: World) -> None:
    number = 7
    twin = pages.get("/search.json", query_string={"q": str(number)}).get_json()
    addresses = [match["address"] for match in twin["possibilities"]]
    assert addresses[-2:] == [f"/transactions/{number}", f"/blocks/{number}"]
    page = pages.get("/search", query_string={"q": str(number)})
    assert page.status_code == 200
    text = page.text
    assert f">Transaction {number}</a>" in text
    assert f">Block {number}</a>" in text
    assert world.transactions[number]["ORIGIN_CITY_NAME"] in text


def test_a_page_that_uses_a_part_of_a_text_is_not_opened(
    pages: FlaskClient, look: Look, flight: Json
) -> None:
    for words in ("first flight", "latest", "early"):
        assert look(f"{words} {flight['ORIGIN']}")[0] == 200
    text = f"{flight['ORIGIN']} to {flight['DEST']} in 5 hours"
    status, path, _ = look(text)
    assert (status, path) == (200, "")
    page = pages.get("/search", query_string={"q": text}).text
    assert f'href="/route?ORIGIN={flight["ORIGIN"]}&amp;DEST={flight["DEST"]}"' in page
    assert "; not used: in 5 hours" in page
    twin = pages.get("/search.json", query_string={"q": text}).get_json()
    assert not any(match["is_whole"] for match in twin["possibilities"])


def test_every_page_that_the_search_opens_answers_all_of_the_text(
    pages: FlaskClient, look: Look, flight: Json
) -> None:
    origin, dest, day = (flight[name] for name in ("ORIGIN", "DEST", "FL_DATE"))
    code = code_of(flight)
    for text, expected in {
        f"{origin} to {dest} at 8 am": "/departures",
        f"{origin} vs {dest}": "/compare",
        f"{flight['ORIGIN_CITY_NAME']} vs {flight['DEST_CITY_NAME']}": "/compare",
        f"worst route of {code}": "/rankings",
        f"best airline to {dest} on {day}": "/rankings",
        "worst day": "/days",
        f"worst month for {code}": "/average_delays",
        f"most cancelled day from {origin}": "/days",
        "January 2015 vs 2015-01-03": "/compare",
        f"{code} {flight['OP_CARRIER_FL_NUM']} vs {code} 9999": "/compare",
        f"{origin} to {dest} at noon": "/departures",
    }.items():
        status, path, _ = look(text)
        assert (status, path) == (302, expected), text
        page = pages.get("/search", query_string={"q": text}, follow_redirects=True)
        assert page.status_code == 200, text


def test_an_unknown_flight_offers_others(pages: FlaskClient, flight: Json) -> None:
    number = flight["OP_CARRIER_FL_NUM"]
    for text in (f"{code_of(flight)} {number} 2033-01-01", f"{number}99"):
        twin = pages.get("/search.json", query_string={"q": text}).get_json()
        assert "/report" not in str(twin["possibilities"])
        assert any("/report?" in suggestion["address"] for suggestion in twin["suggestions"]), text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("block 5,000", "There is no block 5000. The newest block is "),
        ("height 5000", "There is no block 5000. The newest block is "),
        ("tx 999999", "There is no transaction 999999. The newest block is "),
        ("999999999", "There is no transaction 999999999 or block 999999999 or block whose hash"),
        ("00C0FFEE…", "There is no block whose hash begins with 00c0ffee. The newest block is "),
    ],
)
def test_what_the_chain_lacks_is_said_with_how_far_it_goes(
    pages: FlaskClient, text: str, words: str
) -> None:
    height = pages.get("/index.json").get_json()["tip"]["height"]
    page = pages.get("/search", query_string={"q": text}).text
    assert words in page
    assert f"The newest block is {height}, and the newest transaction in a block is " in page
    assert "ask for nothing" not in page
    assert "Not understood" not in page


def test_a_text_that_is_too_long_is_said_to_be(pages: FlaskClient) -> None:
    answer = pages.get("/search", query_string={"q": "how late is united " * 20})
    assert "Only a text of at most 200 characters is understood." in answer.text


def test_words_that_are_not_understood_are_shown_as_they_were_typed(pages: FlaskClient) -> None:
    answer = pages.get("/search?q=Wie spät, wie SPÄT ist シカゴ?")
    assert "Not understood: “Wie”, “spät”, “wie”, “SPÄT”, “ist”, “シカゴ”." in answer.text
    assert "Not understood: “31 June”." in pages.get("/search?q=worst route on 31 June").text


def test_without_results_there_are_suggestions(
    pages: FlaskClient, look: Look, flight: Json
) -> None:
    city = flight["ORIGIN_CITY_NAME"]
    typo = city[:3] + city[4:]
    twin = pages.get("/search.json", query_string={"q": typo}).get_json()
    assert twin["possibilities"] == []
    assert any(city in suggestion["label"] for suggestion in twin["suggestions"])
    assert len(twin["examples"]) >= 5
    for example in twin["examples"]:
        assert look(example)[0] in {200, 302}
        hit = pages.get("/search.json", query_string={"q": example}).get_json()
        assert hit["possibilities"], example
    page = pages.get("/search", query_string={"q": typo}).text
    assert f"No results for “{typo}”" in page


def completions(pages: FlaskClient, text: str) -> list[Json]:
    """Return the suggestions while `text` is typed."""
    answer = pages.get("/search/suggestions.json", query_string={"q": text})
    assert answer.status_code == 200
    suggestions: list[Json] = answer.get_json()["suggestions"]
    return suggestions


def test_flight_numbers_are_suggested(pages: FlaskClient, world: World, flight: Json) -> None:
    carrier, number = flight["OP_CARRIER_AIRLINE_ID"], flight["OP_CARRIER_FL_NUM"]
    flown = Counter(
        transaction["OP_CARRIER_FL_NUM"]
        for transaction in world.transactions
        if transaction["OP_CARRIER_AIRLINE_ID"] == carrier
    )
    code, begun = code_of(flight), str(number)[:-1] or str(number)
    for text in (f"{code} {begun}", f"{code}{begun}".lower()):
        links = [link for link in completions(pages, text) if link["address"].startswith("/report")]
        assert links
        for link in links:
            parts = parse_qs(urlsplit(link["address"]).query)
            assert parts["OP_CARRIER_AIRLINE_ID"] == [str(carrier)]
            (shown,) = parts["OP_CARRIER_FL_NUM"]
            assert shown.startswith(begun)
            assert link["shows"].startswith(filters.counted(flown[int(shown)], "flight"))
    plain = [completion["label"] for completion in completions(pages, begun)]
    assert any(label.startswith("Flight number ") for label in plain)


def test_the_empty_field_shows_examples(pages: FlaskClient, look: Look) -> None:
    assert pages.get("/search").status_code == 200  # makes them
    page = pages.get("/about").text
    (shown,) = re.findall(r'placeholder="([^"]+)"', page)
    for example in shown.split(", "):
        assert look(example)[1] != "", example


def test_the_empty_field_says_what_it_takes(lonely_pages: FlaskClient) -> None:
    assert UNTIL_KNOWN in lonely_pages.get("/about").text


@pytest.mark.parametrize("text", ["☃", "<script>alert(1)</script>", "%", "' OR 1=1", "a" * 5000])
def test_any_text_is_answered_with_a_page(pages: FlaskClient, text: str) -> None:
    page = pages.get("/search", query_string={"q": text})
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert completions(pages, text) == []
