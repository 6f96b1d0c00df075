"""Texts that somebody may have meant, or may be about to type."""

from frontend.coverage import NOTHING_KNOWN, Carrier
from frontend.search.completing import completed, looser, similar, written
from frontend.search.sentences import readings
from tests.cases import each_of
from tests.frontend.search.ledger import KNOWN

COMPLETED: dict[str, list[str]] = {
    "un": ["United Airlines"],
    "Southw": ["Southwest Airlines"],
    "pinn": ["Endeavor Air"],
    "how late is uni": ["how late is United Airlines"],
    "new": ["New York, NY", "Newark, NJ"],
    "EWR-or": ["EWR-ORD"],
    "Newark to Chi": ["Newark to Chicago, IL"],
    "port": ["Portland, OR", "Portland, ME"],
    "san juan": ["San Juán, PR"],
    "wors": ["worst route", "worst airline", "worst airport", "worst day", "worst month"],
    "which is the worst r": [
        "which is the worst route",
        "which is the worst Raleigh/Durham, NC",
        "which is the worst RDU",
    ],
    "united in ju": ["united in June", "united in July"],
    "x": [],
    "": [],
}


@each_of(("text", "expected"), COMPLETED.items())
def test_a_text_is_completed_by_names(text: str, expected: list[str]) -> None:
    assert list(completed(text, KNOWN)) == expected


SIMILAR = {
    "unted": "united",
    "how late is unted in july": "how late is united in july",
    "Chicgo to Newark": "chicago to Newark",
    "Chicgo to Nwark": "chicago to newark",
    "Chigaco": "chicago",
    "dleta": "delta",
    "flights from JFK to Timbuktu": "flights from JFK to ",
    "New Yirk": "new york",
    "texas": "Dallas/Fort Worth, TX",
    "Chica": "Chicago, IL",
}


@each_of(("text", "expected"), SIMILAR.items())
def test_what_names_nothing_is_replaced_by_a_name_or_left_out(text: str, expected: str) -> None:
    assert expected in list(similar(text, KNOWN))


def test_what_is_said_too_much_is_left_out() -> None:
    (read,) = readings("UA 1545 in July 2019", KNOWN)
    found = [(bool(one.carriers), one.days and one.days.name) for one in looser(read, KNOWN)]
    assert found == [(True, "July 2013"), (True, None), (False, None)]
    (read,) = readings("EWR to ORD", KNOWN)
    (back,) = looser(read, KNOWN)
    assert (back.origin, back.destination) == (read.destination, read.origin)


@each_of("carrier", KNOWN.carriers)
def test_a_name_is_written_so_that_the_search_understands_it(carrier: Carrier) -> None:
    for text in (written(carrier), f"How late is {written(carrier)}?"):
        (read,) = readings(text, KNOWN)
        assert carrier in read.carriers


def test_nothing_is_known_of_an_empty_ledger() -> None:
    assert list(similar("United", NOTHING_KNOWN)) == []
