"""What the search asks of a made-up backend, and what it makes of the answers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any

import pytest

from frontend.backend_client import Backend
from frontend.coverage import months_with_flights
from frontend.question import CARRIER, NUMBER
from frontend.search.finding import MOST_COMPLETIONS, MOST_SUGGESTIONS, Finder
from tests.frontend.fake_backend import answering
from tests.frontend.pages.reading import pages_over
from tests.frontend.search.ledger import COMAIR, KNOWN, PSA

PSA_12 = f"OP_CARRIER_FL_NUM=12&OP_CARRIER_AIRLINE_ID={PSA.number}"
MONTHS = [f"{year}-{month:02}" for year in range(1991, 2014) for month in range(1, 13)]
MOST_QUESTIONS = 120  # that one text may lead to


class Ledger:
    """A backend whose flights have the number 12 or 33 and leave from Newark only.

    33 is rare among many numbers that begin with it. days: on which they fly; all, if none are set.
    none_from: the ledger has no flights from then until December 2013.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.days: set[str] = set()
        self.none_from = "2013-12"

    def __call__(self, path: str, parameters: Mapping[str, str]) -> Any:
        self.asked.append(path)
        answers: dict[str, Callable[[Mapping[str, str]], Any]] = {
            "/coverage": lambda _: coverage(),
            "/tip": lambda _: {"height": 0},
            "/average_delays": lambda given: {
                "by_route": [],
                "flights": 3 * (given.get("ORIGIN") in {None, "EWR"}),
            },
            "/suggest": lambda given: {"suggestions": suggested(given.get("q", ""))},
            "/filter_transactions": lambda given: {"count": 3 * self._flies(given)},
            "/flight_counter": lambda given: {
                "count": 3 * (given.get("ORIGIN") in {None, "EWR"} and not self._are_none(given)),
                "by_month": [{"month": month} for month in MONTHS if self._has_flights(month)],
            },
        }
        return answers[path](parameters) if path in answers else {"blocks": []}

    def _has_flights(self, month: str) -> bool:
        return not self.none_from <= month < "2013-12"

    def _are_none(self, given: Mapping[str, str]) -> bool:
        first, last = given["INITIAL_DATE"], given["FINAL_DATE"]
        return last < "1991" or (self.none_from < first and last < "2013-12")

    def _flies(self, given: Mapping[str, str]) -> bool:
        assert given["limit"] == "1"  # all are counted
        is_used = given.get(CARRIER) in {None, str(COMAIR.number), str(PSA.number)}
        first, last = given["FL_DATE"], given["FINAL_DATE"]
        is_flown = not self.days or any(first <= day <= last for day in self.days)
        return given[NUMBER] in {"12", "33"} and is_used and is_flown


def suggested(begun: str) -> list[dict[str, Any]]:
    """Return the ledger's numbers that begin with `begun`: as many as fit, or only 12."""
    if begun.startswith("3"):
        return [{"value": 3300 + number} for number in range(50)]
    by = [{CARRIER: carrier.number, "flights": 4} for carrier in (COMAIR, PSA)]
    return [{"value": 12, "label": "12", "carriers": by, "flights": 8}] * "12".startswith(begun)


def coverage() -> Any:
    """Return `KNOWN` in the form of the backend's answer."""
    known = asdict(KNOWN)
    del known["months"]
    carriers = [{CARRIER: carrier.pop("number"), **carrier} for carrier in known.pop("carriers")]
    return {**known, "carriers": carriers}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def finder(ledger: Ledger) -> Iterator[Finder]:
    with answering(ledger) as url:
        yield Finder(Backend(url), KNOWN)


@pytest.fixture
def shown(ledger: Ledger) -> Iterator[Callable[[str], str]]:
    """The page of a search that does not lead on to another one."""
    with answering(ledger) as url:
        pages = pages_over(url)

        def page(text: str) -> str:
            answer = pages.get("/search", query_string={"q": text})
            assert answer.status_code == 200
            return answer.text

        yield page


def test_a_page_lists_meanings_or_says_no_results(shown: Callable[[str], str]) -> None:
    several = shown("OH")
    assert "<h1>“OH” may mean</h1>" in several
    assert ">How late is Comair?</a>" in several
    assert ">How late is PSA Airlines?</a>" in several
    assert "Did you mean" not in several
    none = shown("unted in july")
    assert "<h1>No results for “unted in july”</h1>" in none
    assert "10,000 flights, 1 January to 20 December 2013" in none
    assert ">How late was United Airlines in July 2013?</a>" in none
    assert "You can search for" in none


def test_days_as_the_search_says_they_may_be_written_are_one_day(
    finder: Finder, shown: Callable[[str], str]
) -> None:
    hint = " ".join(shown("unted in july").partition("Days may be written ")[2].split())
    one_day, two_days = hint.partition(" can mean two days")[0].split("; ")
    for day in one_day.replace(" or ", ", ").split(", "):
        assert [page.address for page in finder.pages(day)] == ["/days/2013-01-13"]
    assert len(finder.pages(two_days)) == 2
    several = hint.partition("several days as ")[2].partition(".")[0].split(" or ")
    assert all("/rankings?" in finder.pages(days)[0].address for days in several)


def test_a_page_that_two_meanings_lead_to_is_told_as_the_first_of_them(finder: Finder) -> None:
    shown = [page.shows for page in finder.pages("New York, New York")]  # it is no route
    assert shown
    assert not [shows for shows in shown if "not used" in shows]


def test_what_has_no_flights_is_not_found(finder: Finder) -> None:
    assert finder.pages("OH 13") == finder.pages("united 12") == []
    assert [page.shows for page in finder.pages("PSA 12")] == ["3 flights: how often it is late"]
    (page,) = finder.pages("PSA 12 on 4 July")
    assert page.shows == "3 flights: what happened to it"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("PSA 12 on 5 July", f"/filter_transactions?{PSA_12}&FL_DATE=2013-07-05"),
        ("PSA 12 in June", f"/report?{PSA_12}&INITIAL_DATE=2013-06-01&FINAL_DATE=2013-06-30"),
    ],
)
def test_a_flight_that_did_not_fly_on_these_days_has_a_page_that_says_so(
    ledger: Ledger, finder: Finder, text: str, address: str
) -> None:
    ledger.days = {"2013-07-04"}
    (page,) = finder.pages(text)
    assert page.address == address
    assert "no such flights" in page.shows
    assert finder.pages(text.replace("12", "13")) == []
    assert finder.pages(text.replace("PSA", "United")) == []


def test_a_number_that_is_rare_among_many_is_found(finder: Finder) -> None:
    (page,) = finder.pages("flight 33")
    assert page.address == "/report?OP_CARRIER_FL_NUM=33"
    assert finder.pages("flight 34") == []


def test_a_route_without_flights_is_explained(finder: Finder) -> None:
    (page,) = finder.pages("ORD-JFK")
    assert page.address == "/route?ORIGIN=ORD&DEST=JFK"
    assert "no such flights" in page.shows
    assert all("ORIGIN=ORD" not in page.address for page in finder.suggestions("ORD-JFKX"))


def test_a_place_that_nothing_leaves_is_one_of_arrival(finder: Finder) -> None:
    for text, end in (("united EWR", "ORIGIN"), ("united ORD", "DEST"), ("worst day ORD", "DEST")):
        (page,) = finder.pages(text)
        assert f"{end}={text[-3:]}" in page.address, text


def test_airports_that_nothing_leaves_are_compared_by_their_arrivals(finder: Finder) -> None:
    for text, what in (("EWR vs ORD", "origin"), ("ORD vs LAX", "destination")):
        (page,) = finder.pages(text)
        items = "&".join(f"item={code}" for code in text.split(" vs "))
        assert page.address == f"/compare?what={what}&{items}"
        assert page.shows == "which is better, and by how much"  # one's flights are not all
    (page,) = finder.pages("LAX or EWR to ORD")  # none fly from LAX
    assert (page.address, page.shows) == (
        "/compare?what=origin&item=LAX&item=EWR&DEST=ORD",
        "which is better, and by how much",
    )


def test_an_hour_alone_is_offered_at_airports(finder: Finder) -> None:
    assert finder.pages("8 am") == finder.pages("flights on Thursday") == []
    offered = [page.address for page in finder.suggestions("8 am")]
    assert offered == ["/departures?ORIGIN=EWR&hour=8"]  # the only one that flights leave
    for text in ("flights on Thursday", "worst weekday", "delays by hour"):
        assert finder.suggestions(text)[0].address == "/airports/EWR", text


def test_numbers_are_suggested_with_their_flights(finder: Finder) -> None:
    shown = [(completion.label, completion.shows) for completion in finder.completions("flight 1")]
    assert ("Flight number 12", "8 flights: how often it is late") in shown


@pytest.mark.parametrize(
    "text",
    [
        "Portland to Dallas in 2013 with OH 9999",
        "chicgo portlnd to dalas worht",
        "1 a 2 b 3 c 4 d 5 e 6 f 7",
        "2013 " * 40,
        "Portland OH " * 16,
        "Portland " * 22,  # four million comparisons
        "n to n",
        "x" * 200,
        "OH 99999",
    ],
)
def test_any_text_leads_to_few_questions(finder: Finder, ledger: Ledger, text: str) -> None:
    assert len(finder.pages(text)) <= 50
    assert len(finder.suggestions(text)) <= MOST_SUGGESTIONS
    assert len(finder.completions(text)) <= MOST_COMPLETIONS
    assert len(ledger.asked) <= MOST_QUESTIONS


def test_days_without_a_year_are_the_latest_with_flights(ledger: Ledger) -> None:
    ledger.none_from = "1991-09"
    with answering(ledger) as url:
        known = replace(KNOWN, first_date="1991-01-01")
        months = cache(partial(months_with_flights, Backend(url), known))
        finder = Finder(Backend(url), replace(known, months=months))
        for text, days in (
            ("july", "INITIAL_DATE=1991-07-01&FINAL_DATE=1991-07-31"),
            ("4 july", "/days/1991-07-04"),
            ("july vs august", "item=July+1991&item=August+1991"),
            ("july 2012", "INITIAL_DATE=2012-07-01"),
            ("october", "INITIAL_DATE=2013-10-01"),  # of no year, so of the latest
            ("december", "INITIAL_DATE=2013-12-01"),
        ):
            ledger.asked.clear()
            assert [page.address for page in finder.pages(text) if days in page.address], text
            assert len(ledger.asked) < 5, "however many years have none"
