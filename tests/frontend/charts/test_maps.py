"""Maps of routes: fitted to the route, clipped, labelled where there is room."""

import re
from itertools import combinations, pairwise

import airportsdata
import pytest

from frontend.charts.maps import HEIGHT, LEAST_AIRPORTS, WIDTH, RouteMap, map_of_route, places_of
from frontend.coverage import Airport, Coverage

CITIES = {
    "ORD": "Chicago, IL", "MDW": "Chicago, IL", "LGA": "New York, NY", "JFK": "New York, NY",
    "LAX": "Los Angeles, CA", "SFO": "San Francisco, CA", "SEA": "Seattle, WA", "MIA": "Miami, FL",
    "DEN": "Denver, CO", "DFW": "Dallas, TX", "ATL": "Atlanta, GA", "STL": "St. Louis, MO",
}  # fmt: skip
FAR = {"HNL": "Honolulu, HI", "GUM": "Guam, TT", "ANC": "Anchorage, AK", "SJU": "San Juan, PR"}
UNKNOWN = {"ZZZ": "Nowhere, KS"}


def between(known: Coverage, *cities: str) -> RouteMap | None:
    ends = ([airport for airport in known.airports if airport.city == city] for city in cities)
    return map_of_route(known, *ends)


NEAR = {
    "EWR": "Newark, NJ", "PHL": "Philadelphia, PA", "BWI": "Baltimore, MD", "ABE": "Allentown, PA",
}  # fmt: skip


def many(count: int) -> dict[str, str]:
    """So many airports of the mainland, in cities of their own."""
    found = [
        code
        for code, airport in airportsdata.load("IATA").items()
        if airport["country"] == "US" and -125 < airport["lon"] < -67 and code not in NEAR
    ]
    return {code: f"City of {code}" for code in sorted(found)[:count]}


def covering(cities: dict[str, str]) -> Coverage:
    airports = (
        Airport(code, city, "", 100 - place) for place, (code, city) in enumerate(cities.items())
    )
    return Coverage(1, "2013-01-01", "2013-01-01", (), tuple(airports))


def route(origin: str, destination: str, cities: dict[str, str]) -> RouteMap:
    found = between(covering(cities), origin, destination)
    assert found is not None
    return found


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?\d+) (-?\d+)", path)]


EVERYWHERE = CITIES | FAR


ROUTES = list(combinations(sorted(set(EVERYWHERE.values())), 2))


@pytest.mark.parametrize(("origin", "destination"), ROUTES)
def test_every_route_is_whole_with_room_for_its_labels(origin: str, destination: str) -> None:
    found = route(origin, destination, EVERYWHERE)
    for x, y in points(found.route):
        assert 0.2 * WIDTH <= x <= 0.8 * WIDTH
        assert 0.2 * HEIGHT <= y <= 0.8 * HEIGHT
    one, other = found.ends
    assert one.is_above != other.is_above
    assert (one.y <= other.y) == one.is_above
    for end in found.ends:
        assert end.anchor == ("start" if end.x < 40 else "end" if end.x > 60 else "middle")


def test_a_great_circle_over_the_date_line_does_not_jump() -> None:
    line = points(route("Guam, TT", "Honolulu, HI", EVERYWHERE).route)
    assert max(abs(x - u) + abs(y - v) for (x, y), (u, v) in pairwise(line)) < WIDTH / 10


def test_a_far_island_does_not_squeeze_the_rest() -> None:
    near = route("Chicago, IL", "Miami, FL", CITIES)
    with_far = route("Chicago, IL", "Miami, FL", EVERYWHERE)
    assert near.route == with_far.route
    assert near.land_width == with_far.land_width


def test_a_city_has_all_its_airports_and_the_distance_is_between_the_busiest() -> None:
    found = route("New York, NY", "Chicago, IL", CITIES)
    assert [end.codes for end in found.ends] == [("LGA", "JFK"), ("ORD", "MDW")]
    assert found.airports == ("LGA", "ORD")
    assert len(points(found.near)) == 4
    assert found.distance_km == pytest.approx(1180, abs=5)
    assert found.distance_miles == pytest.approx(733, abs=3)


def test_a_country_of_airports_is_shown_with_its_land() -> None:
    found = route("Newark, NJ", "Baltimore, MD", NEAR | many(LEAST_AIRPORTS))
    assert found.has_land
    assert set(points(found.near)) <= set(points(found.dots))


def test_around_a_few_airports_no_land_is_drawn_that_nobody_would_recognise() -> None:
    few = NEAR | many(LEAST_AIRPORTS - len(NEAR) - 1)
    found = route("Newark, NJ", "Baltimore, MD", few)
    assert not found.has_land
    assert len(points(found.near)) == 2
    assert len(points(found.dots)) > len(NEAR)


@pytest.mark.parametrize(
    ("origin", "destination"),
    [
        ("Nowhere, KS", "Chicago, IL"),
        ("Chicago, IL", "Nowhere, KS"),
        ("Atlantis", "Chicago, IL"),
        ("Chicago, IL", "Chicago, IL"),
    ],
)
def test_without_two_known_places_there_is_no_map(origin: str, destination: str) -> None:
    assert between(covering(CITIES | UNKNOWN), origin, destination) is None


def test_a_place_is_looked_up_once_be_it_known_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places_of(["ORD", "ZZZ"]).keys() == {"ORD"}
    monkeypatch.setattr("airportsdata.load", lambda _: pytest.fail("read again"))
    assert places_of(["ZZZ", "ORD"]).keys() == {"ORD"}
