"""A day, carrier by carrier."""

from collections import defaultdict

import pytest
from flask.testing import FlaskClient

from tests.api.worlds import Json, World, averages_of
from tests.frontend.pages.reading import table


@pytest.fixture
def day(world: World) -> str:
    """A day in the middle."""
    days = sorted({each["FL_DATE"] for each in world.transactions})
    found: str = days[len(days) // 2]
    return found


def by_carrier(world: World, day: str) -> dict[int, list[Json]]:
    found = defaultdict(list)
    for each in world.transactions:
        if each["FL_DATE"] == day:
            found[each["OP_CARRIER_AIRLINE_ID"]].append(each)
    return found


def test_carriers_are_as_plain_python_counts_them(
    pages: FlaskClient, world: World, day: str
) -> None:
    expected = by_carrier(world, day)
    assert expected
    found = pages.get(f"/days/{day}.json").get_json()
    assert found["FL_DATE"] == day
    assert {each["OP_CARRIER_AIRLINE_ID"] for each in found["carriers"]} == set(expected)
    for each in found["carriers"]:
        flights = averages_of(expected[each["OP_CARRIER_AIRLINE_ID"]])
        for name in flights.keys() & each.keys():
            assert each[name] == pytest.approx(flights[name]), name
    counts = [each["flights"] for each in found["carriers"]]
    assert counts == sorted(counts, reverse=True)


def test_the_page_links_the_days_beside(pages: FlaskClient, world: World, day: str) -> None:
    text = pages.get(f"/days/{day}").text
    expected = by_carrier(world, day)
    assert f"{sum(map(len, expected.values()))} flights of {len(expected)} carriers" in text
    assert text.count('rel="prev"') == text.count('rel="next"') == 1
    days = sorted({each["FL_DATE"] for each in world.transactions})
    first = pages.get(f"/days/{days[0]}").text
    assert 'rel="prev"' not in first
    assert 'rel="next"' in first


def test_the_csv_has_a_row_for_each_carrier(pages: FlaskClient, world: World, day: str) -> None:
    rows = table(pages, f"/days/{day}.csv")
    assert {int(row["OP_CARRIER_AIRLINE_ID"]) for row in rows} == set(by_carrier(world, day))
    assert all(row["carrier"] for row in rows)


def test_a_day_without_flights_says_so(pages: FlaskClient) -> None:
    page = pages.get("/days/1987-10-01")
    assert page.status_code == 200
    assert "no flights on this day" in page.text
    assert pages.get("/days/1987-10-01.json").get_json()["carriers"] == []


@pytest.mark.parametrize("text", ["today", "2013-02-30", "20130105", "0001-01-01", "9999-12-31"])
def test_what_is_no_day_is_not_found(pages: FlaskClient, text: str) -> None:
    page = pages.get(f"/days/{text}")
    assert page.status_code == 404
    assert "is not a day" in page.text
