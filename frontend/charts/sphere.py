"""Distances and ways on the earth, taken as a sphere, and a map of a part of it. Pure.

Places are (latitude, longitude) in degrees, north and east positive. Formulas: great circles as in
R. W. Sinnott, "Virtues of the Haversine" (1984) and K. Shoemake, "Animating rotation with
quaternion curves" (1985, slerp); the projection as in J. P. Snyder, "Map Projections: A Working
Manual" (1987), page 185.
"""

from collections.abc import Sequence
from math import asin, atan2, cos, degrees, hypot, radians, sin, sqrt

EARTH_RADIUS_KM = 6371.0088  # the mean radius, by the IUGG
KM_PER_MILE = 1.609344
LEAST_SINE = 1e-9  # of a great circle's angle: below it the ends are one place, or opposite ones
LEAST_COSINE = -0.5  # of the angle from the middle of a map: beyond 120 degrees all is distorted

Place = tuple[float, float]
Point = tuple[float, float]
Vector = tuple[float, float, float]


def distance_km(start: Place, end: Place) -> float:
    """Return the length of the great circle from one place to another."""
    return EARTH_RADIUS_KM * _angle(_vector(start), _vector(end))


def way(start: Place, end: Place, pieces: int) -> list[Place]:
    """Return places along the great circle, at equal distances, both ends among them.

    Opposite places, which no single way joins, have none; from a place to itself there is none.
    """
    first, last = _vector(start), _vector(end)
    angle = _angle(first, last)
    if sin(angle) < LEAST_SINE:
        return []
    shares = (
        (sin((1 - t) * angle), sin(t * angle)) for t in (n / pieces for n in range(pieces + 1))
    )
    return [
        _place([(a * x + b * y) / sin(angle) for x, y in zip(first, last, strict=True)])
        for a, b in shares
    ]


def middle(places: Sequence[Place]) -> Place:
    """Return the place in the middle of others, or any place if they are all around the earth."""
    return _place([sum(parts) for parts in zip(*map(_vector, places), strict=True)])


def _vector(place: Place) -> Vector:
    latitude, longitude = map(radians, place)
    return cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)


def _place(vector: Sequence[float]) -> Place:
    x, y, z = vector
    return degrees(atan2(z, hypot(x, y))), degrees(atan2(y, x))


def _angle(first: Vector, last: Vector) -> float:
    """Return the angle between two vectors in radians. It is exact for small angles, too."""
    half_chord = sqrt(sum((x - y) ** 2 for x, y in zip(first, last, strict=True))) / 2
    return 2 * asin(min(1.0, half_chord))


def projected(middle: Place, place: Place) -> Point | None:
    """Return (km right of the middle, km below it); None on the far side of the earth.

    Areas are true (Lambert's azimuthal projection); great circles through the middle are straight.
    """
    middle_latitude, middle_longitude = map(radians, middle)
    latitude, longitude = map(radians, place)
    east = cos(latitude) * sin(longitude - middle_longitude)
    along = cos(latitude) * cos(longitude - middle_longitude)
    north = cos(middle_latitude) * sin(latitude) - sin(middle_latitude) * along
    cosine = sin(middle_latitude) * sin(latitude) + cos(middle_latitude) * along
    if cosine < LEAST_COSINE:
        return None
    scale = EARTH_RADIUS_KM * sqrt(2 / (1 + cosine))
    return scale * east, -scale * north
