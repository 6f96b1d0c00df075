"""What a text in the search field may mean."""

import pytest

from frontend.search.meanings import (
    MAX_CHARACTERS,
    Airports,
    Block,
    BlockHash,
    Day,
    Flight,
    Meaning,
    Route,
    Transaction,
    meanings,
)

FIFTH = "2013-01-05"

MEANINGS: dict[str, list[Meaning]] = {
    "335": [Transaction(335), Block(335), Flight(335)],
    "  335 ": [Transaction(335), Block(335), Flight(335)],
    "123456": [Transaction(123456), Block(123456)],
    "#335": [Transaction(335), Block(335)],
    "transaction 335": [Transaction(335)],
    "Block #335": [Block(335)],
    "flight 335": [Flight(335)],
    "WN 335": [Flight(335, "WN")],
    "wn335": [Flight(335, "WN")],
    "9E 3301": [Flight(3301, "9E")],
    "B6-12": [Flight(12, "B6")],
    "0A" * 32: [BlockHash("0a" * 32)],
    "0012ab34cd56…": [BlockHash("0012ab34cd56")],
    "hash 0012AB34CD5...": [BlockHash("0012ab34cd5")],
    "block 0012ab34": [BlockHash("0012ab34")],
    "0012ab3": [],
    "00123456": [Transaction(123456), Block(123456), BlockHash("00123456")],
    "2013-01-05": [Day(FIFTH)],
    "2013-1-5": [Day(FIFTH)],
    "5 Jan 2013": [Day(FIFTH)],
    "5. January 2013": [Day(FIFTH)],
    "Saturday, 5 January 2013": [Day(FIFTH)],
    "Jan 5, 2013": [Day(FIFTH)],
    "1/5/2013": [Day(FIFTH)],
    "5.1.2013": [Day(FIFTH)],
    "2013-02-29": [],
    "13/1/2013": [],
    "5 Foo 2013": [],
    "Chicago to New York": [Route("Chicago", "New York")],
    "from Chicago TO  New York": [Route("Chicago", "New York")],
    "Chicago - New York": [Route("Chicago", "New York")],
    "Winston-Salem – Raleigh/Durham": [Route("Winston-Salem", "Raleigh/Durham")],
    "Chicago → New York": [Route("Chicago", "New York")],
    "ORD-LGA": [Airports("ORD", "LGA")],
    "ord lga": [Airports("ORD", "LGA")],
    "ORD to LGA": [Route("ORD", "LGA")],
    "WN 335 on 5 Jan 2013": [Flight(335, "WN", FIFTH)],
    "335 2013-01-05": [Flight(335, "", FIFTH)],
    "ORD-LGA, Jan 5 2013": [Airports("ORD", "LGA", FIFTH)],
    "Chicago to New York 1/5/2013": [
        Route("Chicago", "New York 1/5/2013"),
        Route("Chicago", "New York", FIFTH),
    ],
    "": [],
    "Chicago": [],
    "٣٣٥": [],
    "9" * 16: [BlockHash("9" * 16)],
    "A to B".ljust(MAX_CHARACTERS, "x") + "x": [],
}


@pytest.mark.parametrize(("text", "expected"), MEANINGS.items(), ids=map(repr, MEANINGS))
def test_a_text_means_this(text: str, expected: list[Meaning]) -> None:
    assert meanings(text) == expected
