"""Which words of a text name nothing in the ledger."""

from hypothesis import given
from hypothesis import strategies as st

from frontend.coverage import NOTHING_KNOWN
from frontend.search.sentences import MAX_CHARACTERS, readings
from tests.cases import each_of
from tests.frontend.search.ledger import KNOWN

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
    "7 July to 9": ["9"],
    "5 Foo 2013": ["Foo", "Foo "],
    "2013-02-29": ["2013-02-29"],
    "#335": ["#335"],
    "123456": ["123456"],
    "٣٣٥": ["٣٣٥"],
    "may 2013 to march 2013": [""],
    "12 34": [""],
    "ORD to LGA to JFK": [""],
    "UA".ljust(MAX_CHARACTERS) + "A": [],
}


@each_of(("text", "words"), UNKNOWN.items())
def test_words_that_name_nothing_are_told(text: str, words: list[str]) -> None:
    found = [" ".join(one.text for one in reading.unknown) for reading in readings(text, KNOWN)]
    assert found == words


def test_an_empty_ledger_names_nothing() -> None:
    assert readings("UA 1545", NOTHING_KNOWN) == []


WORDS = ("UA", "united", "to", "from", "ORD", "new york", "2013", "july", "1545", "-", "☃", "worst")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_can_be_read(text: str) -> None:
    for reading in readings(text, KNOWN):
        assert not reading.says_nothing or reading.unknown
