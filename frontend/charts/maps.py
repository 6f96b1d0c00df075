"""Draws a map of routes: great circles coloured by the share on time, among the ledger's airports.

It has no land, and is as wide as most of its routes: a far island does not squeeze the rest, and
what lies outside is clipped. Places are in units of the drawing, `WIDTH` by `HEIGHT`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from frontend.airport_table import location_of
from frontend.charts.sphere import KM_PER_MILE, Place, Point, distance_km, middle, projected, way
from frontend.coverage import Airport, Coverage

WIDTH, HEIGHT = 1600, 900
PIECES = 12  # a great circle is drawn as so many lines
ROOM = 1.15  # size of the drawing in sizes of what it shows
LEAST_WIDTH_KM = 1200.0
SHOWN = 0.95  # this share of the airports, the nearest to the middle, is inside
MOST_LABELS = 14
LEAST_ROUTES = 3  # fewer say nothing that their table does not
APART = (70, 44)  # units between two labels


class Shaded(Protocol):
    """Colours a route. level: the number of its colour."""

    @property
    def level(self) -> int: ...
    @property
    def flights(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Line:
    """A route on the map. path: of SVG."""

    path: str
    ends: tuple[str, str]
    shown: Shaded


@dataclass(frozen=True, slots=True)
class RoutesMap:
    """A drawn map. lines: the best first. dots: all airports as a path. labels: code -> point.

    beyond: the airports outside, whose lines end at the frame.
    """

    lines: Sequence[Line]
    dots: str
    labels: Mapping[str, Point]
    beyond: Sequence[str]


@dataclass(frozen=True, slots=True)
class Distance:
    """Says how far two airports are from each other."""

    airports: tuple[str, str]
    km: float

    @property
    def miles(self) -> float:
        return self.km / KM_PER_MILE


def places_of(codes: Iterable[str]) -> dict[str, Place]:
    """Return the places of the IATA codes that are known, in the same order."""
    known = ((code, location_of(code)) for code in codes)
    return {code: (place.latitude, place.longitude) for code, place in known if place}


def distance_between(first: Sequence[Airport], last: Sequence[Airport]) -> Distance | None:
    """Return the distance of the busiest airports; None if the place of one is not known."""
    start, end = (places_of(airport.code for airport in airports) for airports in (first, last))
    if not start or not end or first[0].code == last[0].code:
        return None
    ends = next(iter(start)), next(iter(end))
    return Distance(ends, distance_km(start[ends[0]], end[ends[1]]))


def map_of_routes(known: Coverage, routes: Mapping[tuple[str, str], Shaded]) -> RoutesMap | None:
    """Return the map of routes by their airports; None if fewer than LEAST_ROUTES can be drawn."""
    places = places_of(airport.code for airport in known.airports)
    drawn = {ends: row for ends, row in routes.items() if places.keys() >= {*ends}}
    if len(drawn) < LEAST_ROUTES:
        return None
    ends = {code: places[code] for route in drawn for code in route}
    view = _View(list(ends.values()))
    lines = []
    for (start, end), row in sorted(drawn.items(), key=lambda item: -item[1].level):
        if along := way(places[start], places[end], PIECES):
            lines.append(Line(_line(view.points(along)), (start, end), row))
    dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in view.points(places.values()))
    beyond = [code for code, place in ends.items() if not view.shows(place)]
    return RoutesMap(lines, dots, _labels(view, drawn, ends), beyond)


def _labels(
    view: "_View", drawn: Mapping[tuple[str, str], Shaded], ends: Mapping[str, Place]
) -> dict[str, Point]:
    """Return the points of the busiest ends that have room for their names."""
    flights = dict.fromkeys(ends, 0)
    for route, row in drawn.items():
        for code in route:
            flights[code] += row.flights
    labels: dict[str, Point] = {}
    for code in sorted(ends, key=lambda code: -flights[code]):
        for x, y in view.points([ends[code]]):
            is_free = all(
                abs(x - left) > APART[0] or abs(y - top) > APART[1] for left, top in labels.values()
            )
            if is_free and view.shows(ends[code]) and len(labels) < MOST_LABELS:
                labels[code] = x, y
    return labels


class _View:
    """Turns places into points of the drawing."""

    def __init__(self, places: Sequence[Place]) -> None:
        around = middle(places)
        near = sorted(places, key=lambda place: distance_km(around, place))
        inside = near[: max(2, round(SHOWN * len(near)))]
        self._middle = middle(inside)
        points = [point for place in inside if (point := projected(self._middle, place))]
        low, high = ([pick(axis) for axis in zip(*points, strict=True)] for pick in (min, max))
        self._centre = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
        width_km, height_km = (ROOM * (b - a) for a, b in zip(low, high, strict=True))
        self._scale = WIDTH / max(width_km, height_km * WIDTH / HEIGHT, LEAST_WIDTH_KM)

    def points(self, places: Iterable[Place]) -> list[Point]:
        """Return the points of places, without those on the far side of the earth."""
        x, y = self._centre
        return [
            (WIDTH / 2 + (point[0] - x) * self._scale, HEIGHT / 2 + (point[1] - y) * self._scale)
            for place in places
            if (point := projected(self._middle, place))
        ]

    def shows(self, place: Place) -> bool:
        """Whether a place is inside the drawing."""
        return any(0 < x < WIDTH and 0 < y < HEIGHT for x, y in self.points([place]))


def _line(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
