"""What the search asks of a made-up backend, and what it makes of the answers."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from frontend.backend_client import Backend
from frontend.search.finding import MOST_COMPLETIONS, MOST_SUGGESTIONS, Finder
from tests.frontend.fake_backend import answering
from tests.frontend.search.ledger import COMAIR, KNOWN, PSA

MOST_QUESTIONS = 120  # that one text may lead to


class Ledger:
    """A backend whose flights have the number 12 or 33 and leave from Newark only.

    33 is rare among many numbers that begin with it.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, path: str, parameters: Mapping[str, str]) -> Any:
        self.asked.append(path)
        match path:
            case "/filter_transactions":
                is_there = parameters["OP_CARRIER_FL_NUM"] in {"12", "33"}
            case "/flight_counter":
                is_there = parameters.get("ORIGIN", "EWR") == "EWR"
            case "/suggest":
                if parameters["q"].startswith("3"):
                    return {"suggestions": [{"value": 3300 + n} for n in range(50)]}
                by = [{"OP_CARRIER_AIRLINE_ID": one.number, "flights": 4} for one in (COMAIR, PSA)]
                one = {"value": 12, "label": "12", "carriers": by, "flights": 8}
                return {"suggestions": [one] if "12".startswith(parameters["q"]) else []}
            case _:
                return {"transaction": None, "blocks": []}
        return {"count": 3 * is_there}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def finder(ledger: Ledger) -> Iterator[Finder]:
    with answering(ledger) as url:
        yield Finder(Backend(url), KNOWN)


def test_a_code_of_several_carriers_is_a_list_of_them(finder: Finder) -> None:
    assert [one.label for one in finder.found("OH")] == [
        "How late is Comair?",
        "How late is PSA Airlines?",
    ]
    numbers = [one.address.rpartition("=")[2] for one in finder.found("OH 12")]
    assert numbers == [str(COMAIR.number), str(PSA.number)]


def test_what_has_no_flights_is_not_found(finder: Finder) -> None:
    assert finder.found("OH 13") == finder.found("united 12") == []
    assert [one.shows for one in finder.found("PSA 12")] == ["4 flights: how often it is late"]
    (found,) = finder.found("PSA 12 on 4 July")
    assert found.shows == "3 flights: what happened to it"


def test_a_number_that_is_rare_among_many_is_found(finder: Finder) -> None:
    (found,) = finder.found("flight 33")
    assert found.address == "/report?OP_CARRIER_FL_NUM=33"
    assert finder.found("flight 34") == []


def test_a_route_without_flights_has_a_page_that_explains_it_and_is_no_suggestion(
    finder: Finder,
) -> None:
    (found,) = finder.found("ORD-JFK")
    assert found.address == "/route?ORIGIN=ORD&DEST=JFK"
    assert "no such flights" in found.shows
    assert all("ORIGIN=ORD" not in one.address for one in finder.suggestions("ORD-JFKX"))


def test_numbers_are_suggested_with_the_flights_of_their_carriers(
    finder: Finder, ledger: Ledger
) -> None:
    shown = [(one.label, one.shows) for one in finder.completions("flight 1")]
    assert ("Flight number 12", "8 flights: how often it is late") in shown
    assert "/suggest" in ledger.asked


@pytest.mark.parametrize(
    "text",
    [
        "Portland to Dallas in 2013 with OH 9999",
        "chicgo portlnd to dalas worht",
        "1 a 2 b 3 c 4 d 5 e 6 f 7",
        "2013 " * 40,
        "Portland OH " * 16,
        "n to n",
        "x" * 200,
        "OH 99999",
    ],
)
def test_any_text_leads_to_a_bounded_number_of_questions(
    finder: Finder, ledger: Ledger, text: str
) -> None:
    assert len(finder.found(text)) <= 50
    assert len(finder.suggestions(text)) <= MOST_SUGGESTIONS
    assert len(finder.completions(text)) <= MOST_COMPLETIONS
    assert len(ledger.asked) <= MOST_QUESTIONS
