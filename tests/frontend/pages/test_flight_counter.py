"""The page of flights between cities: its bars, its length and its suggestions."""

import re

import pytest
from flask.testing import FlaskClient

from frontend.filters import number
from tests.api.worlds import World
from tests.frontend.pages.reading import raw, slot_rows, small_source
from tests.frontend.years import Year

FROM, TO = "San Francisco, CA", "Los Angeles, CA"
FIRST, LAST = "2015-01-02", "2015-01-08"


def asking(origin: str = FROM, destination: str = TO, **more: str) -> dict[str, str]:
    return {"ORIGIN_CITY_NAME": origin, "DEST_CITY_NAME": destination, **more}


def over_days(origin: str = FROM, destination: str = TO) -> dict[str, str]:
    return asking(origin, destination, INITIAL_DATE=FIRST, FINAL_DATE=LAST)


def counter(pages: FlaskClient, asked: dict[str, str]) -> str:
    return raw(pages, "/flight_counter", query_string=asked)


def links_of(page: str, text: str) -> list[str]:
    matches = re.findall(rf'<a href="([^"]*)"[^>]*>{re.escape(text)}</a>', page)
    return [link.replace("&amp;", "&") for link in matches]


def test_each_day_has_a_row_and_those_with_flights_a_bar(pages: FlaskClient) -> None:
    page = counter(pages, over_days())
    counts = pages.get("/flight_counter.json", query_string=over_days()).get_json()["by_day"]
    assert slot_rows(page).count('<th scope="row">') == 7
    assert len(re.findall(r"<title>\w+ \d Jan 2015: \d+ flights", page)) == len(counts) > 0


def test_cities_that_are_none_are_answered_with_what_may_be_meant(pages: FlaskClient) -> None:
    page = counter(pages, over_days("San Fransisco, CA", "Los Angles, CA"))
    count = pages.get("/flight_counter.json", query_string=over_days()).get_json()["count"]
    assert "No flight in the ledger has the city Los Angles, CA." in page
    assert "Evidence" not in page
    for label in (FROM, TO):
        (path,) = links_of(page, label)
        answer = pages.get(path).text
        assert f'<p class="figure-large">{number(count)}</p>' in answer


def test_a_ledger_of_departures_only(pages: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    names = pages.application.jinja_env.globals
    monkeypatch.setitem(names, "only_origins", lambda _: ["EWR", "JFK", "LGA"])
    page = counter(pages, asking(FROM, FROM))
    assert "The ledger holds only departures from EWR, JFK and LGA" in page
    assert '<p class="figure-large">0</p>' not in page


def test_the_empty_form_offers_all_cities(pages: FlaskClient, world: World) -> None:
    page = counter(pages, {})
    cities = set(re.findall(r'<option value="([^"]*)">', page))
    names = {
        name
        for flight in world.transactions
        for name in (flight["ORIGIN_CITY_NAME"], flight["DEST_CITY_NAME"])
    }
    assert cities == names
    assert 'role="alert"' not in page


# --- a year


def test_all_numbers_are_as_of_the_same_block(year: Year, year_pages: FlaskClient) -> None:
    twin = year_pages.get("/flight_counter.json", query_string=asking()).get_json()
    *_, carriers, back = year.asked  # a slow machine may be asked the first one twice
    assert carriers["as_of"] == back["as_of"] == str(twin["as_of"]["height"])


def test_a_year_is_drawn_whole_and_stays_small(year_pages: FlaskClient) -> None:
    asked = asking("New York, NY", "Honolulu, HI")
    page = small_source(year_pages, "/flight_counter", query_string=asked)
    table = slot_rows(page)
    assert table.count('<th scope="row">') == 365


def test_a_place_that_nobody_knows_is_said_in_words(year_pages: FlaskClient) -> None:
    page = counter(year_pages, asking("Nowhere, KS", "Chicago, IL"))
    assert "Its length is not known, because the location of an airport is not." in page
