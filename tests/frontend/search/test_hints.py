"""What a hint names is in the ledger, and its field takes it."""

import re
from dataclasses import replace
from itertools import product

from flask.testing import FlaskClient

from frontend.coverage import NOTHING_KNOWN, Coverage
from frontend.pages.compare import SUBJECTS
from frontend.search.fields import as_asked
from frontend.search.hints import KINDS, examples, hints
from frontend.search.sentences import readings
from tests.cases import each_of
from tests.frontend.pages.reading import raw
from tests.frontend.search.ledger import KNOWN

EXPECTED = {
    "carrier": "United Airlines or 19977",
    "origin": "EWR or New York, NY",
    "destination": "JFK or Newark, NJ",
    "route": "EWR-JFK or Newark, NJ to New York, NY",
    "flight": "1545 or UA 1545",
    "day": "20 December 2013",
    "days": "December 2013 or 1 to 7 December",
    "any": "United Airlines, EWR, EWR-JFK, UA 1545 or December 2013",
}


def test_hints_are_of_this_ledger() -> None:
    assert examples(KNOWN) == EXPECTED
    assert hints(KNOWN) == {kind: f"Such as {text}" for kind, text in EXPECTED.items()}


OF_OH = [replace(each, shares_code=True) for each in KNOWN.carriers if each.code == "OH"]


@each_of(("kind", "known"), product(SUBJECTS, (KNOWN, replace(KNOWN, carriers=tuple(OF_OH)))))
def test_a_field_takes_what_its_hint_says(kind: str, known: Coverage) -> None:
    for text in examples(known)[kind].split(" or "):
        assert SUBJECTS[kind].read(text, known), text
    for text in re.split(r", (?!NJ|NY)| or ", examples(known)["any"]):
        assert readings(text, known)
        assert not readings(text, known)[0].unknown


def test_a_day_of_a_hint_is_taken() -> None:
    assert as_asked([("FL_DATE", examples(KNOWN)["day"])], KNOWN) == [("FL_DATE", "2013-12-20")]


def test_an_empty_ledger_has_no_examples() -> None:
    assert hints(NOTHING_KNOWN) == dict.fromkeys(KINDS, "") | {"flight": "Such as 1545"}


@each_of("path", ["/", "/report", "/departures", "/compare", "/filter_transactions", "/add"])
def test_pages_name_nothing_of_another_year(pages: FlaskClient, path: str) -> None:
    given = re.findall(r'<p class="hint" id="[^"]*">(Such as [^<]*)</p>', raw(pages, path))
    assert given
    for year in re.findall(r"\b\d{4}\b", " ".join(given)):
        assert year in {"1545", "2015"}
