"""A form above an answer holds its question, and what somebody types in its place is asked."""

import html
import re
from urllib.parse import parse_qsl, urlencode, urlsplit

from flask.testing import FlaskClient

from tests.cases import each_of
from tests.frontend.pages.reading import raw, source

COUNTER, STATUS = "/flight_counter", "/filter_transactions"
LAX, CHICAGO = "Los Angeles, CA", "Chicago, IL"
FIRST, LAST = "2015-01-02", "2015-01-08"


def form_of(page: str, action: str) -> list[tuple[str, str]]:
    """Return the (name, value) pairs that a browser sends of a form."""
    form = page.partition(f'<form class="asked" action="{action}">')[2].partition("</form>")[0]
    pattern = r'<input[^>]*|<select[^>]* name="\w+"|<option[^>]* selected'
    pairs, name = [], ""
    for tag in re.findall(pattern, form):
        names, values = (re.findall(rf' {part}="([^"]*)"', tag) for part in ("name", "value"))
        name = names[0] if names else name
        if values and (' type="checkbox"' not in tag or " checked" in tag):
            pairs.append((name, html.unescape(values[0])))
    return pairs


def changed(pages: FlaskClient, address: str, **typed: str) -> dict[str, str]:
    """Return the question at which somebody arrives who changes fields of a page's form."""
    action = address.partition("?")[0]
    pairs = form_of(raw(pages, address), action)
    assert typed.keys() <= dict(pairs).keys()
    query = urlencode([(name, typed.get(name, value)) for name, value in pairs])
    answer = pages.get(f"{action}?{query}", follow_redirects=True)
    assert answer.status_code == 200
    return dict(parse_qsl(urlsplit(answer.request.url).query))


DAYS = {"INITIAL_DATE": FIRST, "FINAL_DATE": LAST}
CITIES = {"ORIGIN_CITY_NAME": LAX, "DEST_CITY_NAME": CHICAGO}
AIRPORTS = {"ORIGIN": "LAX", "DEST": "ORD"}
MIXED = {"ORIGIN": "LAX", "DEST_CITY_NAME": CHICAGO}
ENTERED = {
    "SFO": {"ORIGIN": "SFO"},
    "Atlanta": {"ORIGIN_CITY_NAME": "Atlanta, GA"},
    "Atlanta, GA": {"ORIGIN_CITY_NAME": "Atlanta, GA"},
}


@each_of("path", [COUNTER, "/route", "/days", "/departures"])
@each_of("ends", [CITIES, AIRPORTS, MIXED])
def test_a_place_that_is_typed_takes_the_place_of_the_one_asked(
    pages: FlaskClient, path: str, ends: dict[str, str]
) -> None:
    days = {} if path == "/departures" else DAYS
    address = f"{path}?{urlencode(ends | days)}"
    assert changed(pages, address).items() >= (ends | days).items()
    assert 'class="beside"' not in raw(pages, address)
    kept = {name: value for name, value in ends.items() if name.startswith("DEST")}
    for text, asked in ENTERED.items():
        question = changed(pages, address, ORIGIN_CITY_NAME=text)
        places = {name: value for name, value in question.items() if name.startswith(("O", "DEST"))}
        assert places == asked | kept


def test_an_airport_and_a_city_of_one_end_are_both_kept(pages: FlaskClient) -> None:
    both = {"ORIGIN": "LAX", **CITIES}
    address = f"{COUNTER}?{urlencode(both)}"
    assert "> only from LAX</label>" in raw(pages, address)
    assert changed(pages, address).items() >= both.items()
    moved = changed(pages, address, ORIGIN_CITY_NAME="Atlanta")
    assert moved["ORIGIN_CITY_NAME"] == "Atlanta, GA"


SEVERAL = f"{STATUS}?OP_CARRIER_FL_NUM=1&FL_DATE={FIRST}&FINAL_DATE={LAST}"
TYPED_DAYS = {
    "1 to 7 January": {"FL_DATE": "2015-01-01", "FINAL_DATE": "2015-01-07"},
    "5 Jan": {"FL_DATE": "2015-01-05"},
    "3 Jan 2015": {"FL_DATE": "2015-01-03"},
    "2 to 8 January 2015": {"FL_DATE": FIRST, "FINAL_DATE": LAST},
}


@each_of(("text", "asked"), TYPED_DAYS.items())
def test_a_day_that_is_typed_takes_the_place_of_those_asked(
    pages: FlaskClient, text: str, asked: dict[str, str]
) -> None:
    assert changed(pages, SEVERAL, FL_DATE=text) == {"OP_CARRIER_FL_NUM": "1", **asked}


def test_several_days_of_a_flight_are_in_its_field(pages: FlaskClient) -> None:
    assert 'name="FL_DATE" type="text" value="2 to 8 January 2015"' in source(pages, SEVERAL)
    report = pages.get(f"{STATUS}?OP_CARRIER_FL_NUM=1&FL_DATE=", follow_redirects=True)
    assert changed(pages, SEVERAL, FL_DATE="") == {"OP_CARRIER_FL_NUM": "1"}
    assert report.request.path == "/report"
    wrong = raw(pages, SEVERAL.replace(FIRST, "2015-01-09"), 400)
    assert f'value="2015-01-09 to {LAST}"' in wrong
    assert "The first day must not be after the last day." in wrong
