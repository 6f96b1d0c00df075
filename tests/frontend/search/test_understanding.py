"""What a text in the search field may name, what of it names nothing, and how it goes on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.coverage import NOTHING_KNOWN, Airport, Carrier
from frontend.search.completing import completed, looser, similar, written
from frontend.search.fields import route
from frontend.search.finding import named_in_chain
from frontend.search.names import Place
from frontend.search.reading import Reading
from frontend.search.sentences import MAX_CHARACTERS, readings
from tests.cases import each_of
from tests.frontend.search.ledger import KNOWN

Meanings = list[tuple[str, str]]
TRANSACTION, BLOCK, HASH = "transaction", "block", "hash"

MEANINGS: dict[str, Meanings] = {
    "335": [(TRANSACTION, "335"), (BLOCK, "335")],
    "  335 ": [(TRANSACTION, "335"), (BLOCK, "335")],
    "123456": [(TRANSACTION, "123456"), (BLOCK, "123456")],
    "123,456": [(TRANSACTION, "123456"), (BLOCK, "123456")],
    "#335": [(TRANSACTION, "335"), (BLOCK, "335")],
    "transaction 335": [(TRANSACTION, "335")],
    "transaction id 335": [(TRANSACTION, "335")],
    "id 335": [(TRANSACTION, "335")],
    "Block #335": [(BLOCK, "335")],
    "block 1,335": [(BLOCK, "1335")],
    "height 335": [(BLOCK, "335")],
    "block335": [(BLOCK, "335")],
    "block number 335": [(BLOCK, "335")],
    "flights in block 335": [(BLOCK, "335")],
    "hash of the block 335": [(BLOCK, "335")],
    "proof of transaction 335": [(TRANSACTION, "335")],
    "flights in 335": [],
    "block with hash 0012ab34": [(HASH, "0012ab34")],
    "0x0012ab34cd56": [(HASH, "0012ab34cd56")],
    "tx#335": [(TRANSACTION, "335")],
    "transaction no. 335": [(TRANSACTION, "335")],
    "block height 335": [(BLOCK, "335")],
    "flight 335": [],
    "WN 335": [],
    "0A" * 32: [(HASH, "0a" * 32)],
    "0012ab34cd56…": [(HASH, "0012ab34cd56")],
    "hash 0012AB34CD5...": [(HASH, "0012ab34cd5")],
    "block hash 0012AB34CD5": [(HASH, "0012ab34cd5")],
    "block 0012ab34": [(HASH, "0012ab34")],
    "0012ab3": [],
    "00123456": [(TRANSACTION, "00123456"), (BLOCK, "00123456"), (HASH, "00123456")],
    "2013-01-05": [],
    "1,23": [],
    "": [],
    "Chicago": [],
    "٣٣٥": [],
    "9" * 16: [(HASH, "9" * 16)],
    "a" * 5000: [],
}


@pytest.mark.parametrize(("text", "expected"), MEANINGS.items(), ids=lambda text: repr(text)[:40])
def test_a_text_means_this(text: str, expected: Meanings) -> None:
    assert named_in_chain(text) == expected


# The words of a text that name nothing, for each way to read it. `test_answers` has other texts.
UNKNOWN: dict[str, list[str]] = {
    "JFK 2/30": ["2/30"],
    "JFK at 25:00": ["at 25:00"],
    "JFK to LAX at 13 am": ["at 13 am"],
    "worst route on 31 June": ["31 June"],
    "flights on 31 April": ["31 April"],
    "days of 31 June": ["31 June"],
    "31 February 2013": ["31 February 2013"],
    "29 Feb 2013": ["29 Feb 2013"],
    "32 July": ["32 July"],
    "flight 31 June": ["31 June"],
    "UA 31 June": ["31 June"],
    "7 to 1 July": ["7 to 1 July"],
    "May 5 and 6": ["6"],
    "5 and 6 May": ["5"],
    "UA 15 on May 5 and 6": ["15 6"],
    "May 5, 6": ["6"],
    "5, 6 May": ["5"],
    "EWR, May 5,6": ["6"],
    "Friday 5 January 2013": ["Friday 5 January 2013"],
    "sunday, 4 may 2013": ["sunday, 4 may 2013"],
    "7 July to 9": ["9"],
    "5 Foo 2013": ["Foo", "Foo "],
    "2013-02-29": ["2013-02-29"],
    "#335": ["#335"],
    "airline with no delays": ["no"],
    "123456": ["123456"],
    "٣٣٥": ["٣٣٥"],
    "may 2013 to march 2013": [""],
    "10 january to 5 january": [""],
    "until 31 december 2012": [""],
    "12 34": [""],
    "ORD to LGA to JFK": [""],
    "delays in Chicago, and Delta in New York": [""],
    "Chicago and cancellations in New York": [""],
    "UA".ljust(MAX_CHARACTERS, "A") + "A": [],
    "\ufdfa" * (MAX_CHARACTERS // 10): [],  # each stands for a phrase of 18
}


@each_of(("text", "words"), UNKNOWN.items())
def test_words_that_name_nothing_are_told(text: str, words: list[str]) -> None:
    unknown = [reading.unknown for reading in readings(text, KNOWN)]
    assert all(unknown)  # one without text stands for words that do not fit together
    assert [" ".join(word.text for word in tokens) for tokens in unknown] == words


def test_the_name_of_a_state_that_is_that_of_a_city_too_means_either() -> None:
    buffalo = Airport("BUF", "Buffalo, NY", "New York", 1)
    known = replace(KNOWN, airports=(*KNOWN.airports, buffalo))
    cities = ("Buffalo, NY", "New York, NY", "Chicago, IL")
    at_buffalo, new_york, chicago = ((Place(c, flights=known.cities[c]),) for c in cities)
    route = Reading(origin=at_buffalo, destination=new_york)
    assert readings("Buffalo New York", known) == [Reading(at=at_buffalo), route]
    assert readings("Buffalo to New York", known) == [route]
    assert readings("New York Buffalo", known) == [Reading(origin=new_york, destination=at_buffalo)]
    to_chicago, unclear = readings("from Buffalo, New York to Chicago", known)
    assert to_chicago == Reading(origin=at_buffalo, destination=chicago)
    assert unclear.unknown


def test_the_code_of_an_airport_may_be_a_word_for_the_country() -> None:
    concord = Airport("USA", "Concord, NC", "North Carolina", 1)
    known = replace(KNOWN, airports=(*KNOWN.airports, concord))
    assert route("USA-JFK", known) == {"ORIGIN": "USA", "DEST": "JFK"}
    assert route("JFK to USA", known) == {"ORIGIN": "JFK", "DEST": "USA"}
    assert readings("busiest route in the USA", known) == readings("busiest route", known)


def test_places_may_be_abbreviated_as_on_signs() -> None:
    signs = {
        "washington, d.c.": "Washington, DC",
        "Saint Louis": "St. Louis, MO",
        "Ft. Lauderdale": "Fort Lauderdale, FL",
        "dallas/ft. worth": "Dallas/Fort Worth, TX",
    }
    airports = (Airport(f"X{at}", city, "", 1) for at, city in enumerate(signs.values()))
    known = replace(KNOWN, airports=tuple(airports))
    assert [[r.at[0].city for r in readings(text, known)] for text in signs] == [
        [city] for city in signs.values()
    ]


def test_a_word_may_be_the_code_of_an_airport() -> None:
    fargo = Airport("FAR", "Fargo, ND", "North Dakota", 1)
    known = replace(KNOWN, airports=(*KNOWN.airports, fargo))
    assert route("FAR-JFK", known) == {"ORIGIN": "FAR", "DEST": "JFK"}
    assert [word.text for word in readings("how far is JFK", known)[0].unknown] == ["far"]


def test_an_empty_ledger_names_nothing() -> None:
    assert readings("UA 1545", NOTHING_KNOWN) == []


WORDS = ("UA", "united", "to", "from", "ORD", "new york", "2013", "july", "1545", "-", "☃", "worst")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_can_be_read(text: str) -> None:
    for reading in readings(text, KNOWN):
        assert not reading.says_nothing or reading.unknown


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
    "Janury": "january",
    "Jnauary 5": "january 5",
    "worst route in Febuary": "worst route in february",
    "Thanksgivng": "thanksgiving",
    "flights from JFK to Timbuktu": "flights from JFK to ",
    "New Yirk": "new york",
    "texas": "Dallas/Fort Worth, TX",
    "Chica": "Chicago, IL",
}


@each_of(("text", "expected"), SIMILAR.items())
def test_what_names_nothing_is_replaced_by_a_name_or_left_out(text: str, expected: str) -> None:
    assert expected in list(similar(text, KNOWN))


def test_a_short_word_inside_a_text_begins_no_name() -> None:
    assert next(similar("route with un delays", KNOWN)) == "route with  delays"


def test_what_is_said_too_much_is_left_out() -> None:
    (read,) = readings("UA 1545 in July 2019", KNOWN)
    cuts = [(bool(cut.carriers), cut.days and cut.days.name) for cut in looser(read, KNOWN)]
    assert cuts == [(True, "July 2013"), (True, None), (False, None)]
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
