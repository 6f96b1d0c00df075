"""Maps of routes: as wide as most of them, coloured, labelled where there is room."""

import re
from dataclasses import dataclass
from itertools import combinations

import pytest

from frontend.charts.maps import APART, HEIGHT, WIDTH, RoutesMap, distance_between, map_of_routes
from frontend.coverage import Airport, Coverage
from tests.cases import each_of

CITIES = {
    "JFK": "New York, NY", "LGA": "New York, NY", "ORD": "Chicago, IL", "MDW": "Chicago, IL",
    "LAX": "Los Angeles, CA", "SFO": "San Francisco, CA", "SEA": "Seattle, WA", "MIA": "Miami, FL",
    "DEN": "Denver, CO", "DFW": "Dallas, TX", "ATL": "Atlanta, GA", "STL": "St. Louis, MO",
    "EWR": "Newark, NJ", "PHL": "Philadelphia, PA", "BWI": "Baltimore, MD", "BOS": "Boston, MA",
    "HNL": "Honolulu, HI", "SYD": "Sydney", "ZZZ": "Nowhere, KS",
}  # fmt: skip
KNOWN = Coverage(
    1, None, None, (),
    tuple(Airport(code, city, "", 99 - n) for n, (code, city) in enumerate(CITIES.items())),
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    level: int = 4
    flights: int = 1


def from_jfk(*codes: str, **more: Shown) -> RoutesMap:
    routes = {("JFK", code): more.get(code, Shown()) for code in (*codes, *more)}
    drawn = map_of_routes(KNOWN, routes)
    assert drawn
    return drawn


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?\d+) (-?\d+)", path)]


MAINLAND = [code for code in CITIES if code not in {"JFK", "LGA", "HNL", "SYD", "ZZZ"}]


def test_all_routes_are_inside_and_fill_the_map() -> None:
    drawn = from_jfk(*MAINLAND)
    places = [point for line in drawn.lines for point in points(line.path)]
    for axis, size in ((0, WIDTH), (1, HEIGHT)):
        assert all(0 <= point[axis] <= size for point in places)
    west, east = (pick(x for x, _ in places) for pick in (min, max))
    south, north = (pick(y for _, y in places) for pick in (min, max))
    assert east - west > 0.8 * WIDTH or north - south > 0.8 * HEIGHT
    assert all(line.path.startswith(drawn.lines[0].path.split("L")[0]) for line in drawn.lines)


def test_a_far_island_does_not_squeeze_the_rest() -> None:
    near, all_routes = from_jfk(*MAINLAND), from_jfk(*MAINLAND, "HNL", "SYD")
    assert (near.beyond, all_routes.beyond) == ([], ["SYD"])

    def width(drawn: RoutesMap) -> float:
        (line,) = [line for line in drawn.lines if line.ends[1] == "LAX"]
        return abs(points(line.path)[0][0] - points(line.path)[-1][0])

    assert width(all_routes) > 0.5 * width(near)


def test_the_worst_routes_are_drawn_last() -> None:
    drawn = from_jfk("LAX", "ORD", SEA=Shown(0), MIA=Shown(2))
    assert [line.shown.level for line in drawn.lines] == [4, 4, 2, 0]


def test_labels_are_apart_and_those_of_the_busiest() -> None:
    drawn = from_jfk(*(code for code in MAINLAND if code != "MDW"), MDW=Shown(flights=1000))
    assert {"JFK", "MDW"} <= drawn.labels.keys()  # and not ORD, which is beside it
    for (x, y), (left, top) in combinations(drawn.labels.values(), 2):
        assert abs(x - left) > APART[0] or abs(y - top) > APART[1]


@each_of("codes", [(), ("LAX", "ORD"), ("LAX", "ORD", "ZZZ")])
def test_there_is_no_map_of_a_few_routes_or_of_unknown_places(codes: tuple[str, ...]) -> None:
    assert map_of_routes(KNOWN, {("JFK", code): Shown() for code in codes}) is None


def test_the_distance_is_that_of_the_busiest_airports() -> None:
    airports = {code: [a for a in KNOWN.airports if a.city == CITIES[code]] for code in CITIES}
    distance = distance_between(airports["JFK"], airports["ORD"])
    assert distance
    assert distance.airports == ("JFK", "ORD")
    assert distance.miles == pytest.approx(740, abs=2)
    assert distance.km == pytest.approx(1191, abs=3)
    assert distance_between(airports["JFK"], airports["ZZZ"]) is None
    assert distance_between(airports["JFK"], airports["LGA"]) is None
    assert distance_between(airports["JFK"][:1], airports["LGA"][1:])
    assert distance_between([], airports["ORD"]) is None
