"""Draws the map of a route: the great circle, the airports of the ledger, and land around them.

The land is a wide disc around each airport, so its likeness depends on how many there are. Around
the 103 airports that flights from New York reached in 2013 nobody knows the country again. A ledger
of a country has 300 airports or more. With fewer than `LEAST_AIRPORTS` there is no land, and pages
show no map: a line among dots tells nothing that its length does not.

The view is fitted to the route, so that a far island does not squeeze the rest; the parts outside
are clipped. Places are in units of the drawing, `WIDTH` by `HEIGHT`; those of text are in percent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from frontend.airport_table import location_of
from frontend.charts.sphere import KM_PER_MILE, AroundMiddle, Place, Point, distance_km, way
from frontend.coverage import Airport, Coverage

WIDTH, HEIGHT = 1600, 900
PIECES = 32  # the great circle is drawn as so many lines
ROOM_WIDE, ROOM_HIGH = 1.7, 2.4  # size of the view in sizes of the route: labels, surroundings
LEAST_WIDTH_KM = 2600.0  # a narrower view shows no shape that one knows
LEAST_AIRPORTS = 200  # around fewer the land is not recognised
LAND_KM = 210.0  # radius of the land that is drawn around an airport
LABELS_INSIDE = (40.0, 60.0)  # percent: left of them labels begin at their places, right they end


@dataclass(frozen=True, slots=True)
class End:
    """A city on the map. x, y: in percent. anchor: as in SVG. codes: of its airports."""

    city: str
    codes: tuple[str, ...]
    x: float
    y: float
    anchor: str
    is_above: bool


@dataclass(frozen=True, slots=True)
class RouteMap:
    """A drawn map. dots, near, route: paths of SVG; near has the cities' airports.

    has_land: false if it would not be recognised; then pages show only the distance. land_width:
    width of the dots that are the land. airports: the two between which the distance is.
    """

    has_land: bool
    land_width: float
    dots: str
    near: str
    route: str
    ends: tuple[End, End]
    airports: tuple[str, str]
    distance_km: float

    @property
    def distance_miles(self) -> float:
        return self.distance_km / KM_PER_MILE


def places_of(codes: Iterable[str]) -> dict[str, Place]:
    """Return the places of the IATA codes that are known, in the same order."""
    known = ((code, location_of(code)) for code in codes)
    return {code: (place.latitude, place.longitude) for code, place in known if place}


def map_of_route(
    known: Coverage, origins: Sequence[Airport], destinations: Sequence[Airport]
) -> RouteMap | None:
    """Return the map between the busiest of these airports; None if the place of one is unknown."""
    places = places_of(airport.code for airport in known.airports)
    first, last = (
        [airport for airport in airports if airport.code in places]
        for airports in (origins, destinations)
    )
    if not first or not last or first[0].city == last[0].city:
        return None
    return _drawn(places, first, last)


def _drawn(
    places: Mapping[str, Place], first: Sequence[Airport], last: Sequence[Airport]
) -> RouteMap | None:
    """The map; None if the cities are opposite. first, last: their airports, busiest first."""
    start, end = first[0].code, last[0].code
    try:
        along = way(places[start], places[end], PIECES)
    except ValueError:
        return None
    view = _View(along)
    route = view.points(along)
    dots = {code: point for code, place in places.items() if (point := view.point(place))}
    near = [dots[airport.code] for airport in (*first, *last) if airport.code in dots]
    is_first_above = route[0][1] <= route[-1][1]
    return RouteMap(
        len(places) >= LEAST_AIRPORTS,
        2 * LAND_KM * view.scale,
        _dots(point for point in dots.values() if _is_near(*point)),
        _dots(near),
        _line(route),
        (_end(first, route[0], is_first_above), _end(last, route[-1], not is_first_above)),
        (start, end),
        distance_km(places[start], places[end]),
    )


class _View:
    """Turns places into points of the drawing. scale: units per km."""

    def __init__(self, along: Sequence[Place]) -> None:
        self._map = AroundMiddle(along[len(along) // 2])
        points = [point for place in along if (point := self._map.point(place))]
        widths = [max(values) - min(values) for values in zip(*points, strict=True)]
        width_km = max(
            ROOM_WIDE * widths[0], ROOM_HIGH * widths[1] * WIDTH / HEIGHT, LEAST_WIDTH_KM
        )
        self.scale = WIDTH / width_km

    def point(self, place: Place) -> Point | None:
        """Return the point of a place; None if it is too far away."""
        point = self._map.point(place)
        if point is None:
            return None
        x, y = point
        return WIDTH / 2 + x * self.scale, HEIGHT / 2 + y * self.scale

    def points(self, places: Iterable[Place]) -> list[Point]:
        return [point for place in places if (point := self.point(place))]


def _end(airports: Sequence[Airport], point: Point, is_above: bool) -> End:
    x, y = 100 * point[0] / WIDTH, 100 * point[1] / HEIGHT
    left, right = LABELS_INSIDE
    anchor = "start" if x < left else "end" if x > right else "middle"
    codes = tuple(airport.code for airport in airports)
    return End(airports[0].city, codes, x, y, anchor, is_above)


def _is_near(x: float, y: float) -> bool:
    """Return whether a point lies on the drawing, or not far from it."""
    return -WIDTH < x < 2 * WIDTH and -HEIGHT < y < 2 * HEIGHT


def _line(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)


def _dots(points: Iterable[Point]) -> str:
    """Return lines without length, which are drawn as dots."""
    return "".join(f"M{x:.0f} {y:.0f}h0" for x, y in points)
