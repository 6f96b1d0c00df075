"""Great circles and the map around a middle, against geometry that is known."""

from functools import partial
from itertools import pairwise
from math import hypot, pi

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from frontend.charts.sphere import EARTH_RADIUS_KM, Place, distance_km, projected, way

PLACES = st.tuples(st.floats(-89, 89), st.floats(-180, 180))
HALF_ROUND_KM = pi * EARTH_RADIUS_KM
NEW_YORK = (40.64, -73.78)


@pytest.mark.parametrize(
    ("start", "end", "part_of_half_round"),
    [
        ((0, 0), (0, 0), 0),
        ((90, 0), (0, 17), 1 / 2),
        ((90, 0), (-90, 55), 1),
        ((0, 0), (0, 180), 1),
        ((0, 170), (0, -170), 1 / 9),
        ((10, 20), (11, 20), 1 / 180),
    ],
)
def test_well_known_distances(start: Place, end: Place, part_of_half_round: float) -> None:
    assert distance_km(start, end) == pytest.approx(part_of_half_round * HALF_ROUND_KM, abs=1e-3)


@given(PLACES, PLACES)
def test_distances_are_the_same_both_ways(start: Place, end: Place) -> None:
    assert distance_km(start, end) == pytest.approx(distance_km(end, start))
    assert distance_km(start, end) <= HALF_ROUND_KM * (1 + 1e-12)


@given(PLACES, PLACES, st.integers(1, 20))
def test_a_way_goes_in_equal_steps_and_is_no_detour(start: Place, end: Place, pieces: int) -> None:
    total = distance_km(start, end)
    assume(0.1 < total < 0.999 * HALF_ROUND_KM)
    places = way(start, end, pieces)
    steps = [distance_km(*pair) for pair in pairwise(places)]
    assert steps == pytest.approx([total / pieces] * pieces, abs=1e-3)
    assert distance_km(places[0], start) < 1e-3
    assert distance_km(places[-1], end) < 1e-3


def test_opposite_and_equal_places_have_no_way() -> None:
    assert way((90, 0), (-90, 0), 4) == way((9, 9), (9, 9), 4) == []


@given(PLACES, PLACES)
def test_a_great_circle_through_the_middle_is_straight(start: Place, end: Place) -> None:
    assume(10 < distance_km(start, end) < 0.6 * HALF_ROUND_KM)
    along = way(start, end, 4)
    view = partial(projected, along[2])
    points = [view(place) for place in along]
    (x, y), (u, v) = points[0] or (0, 0), points[1] or (0, 0)
    assert abs(x * v - y * u) <= 1e-6 * hypot(x, y) * hypot(u, v)
    assert points[2] == pytest.approx((0, 0), abs=1e-3)


def test_near_the_middle_lengths_are_true_and_north_is_up() -> None:
    view = partial(projected, NEW_YORK)
    north, east = (NEW_YORK[0] + 0.1, NEW_YORK[1]), (NEW_YORK[0], NEW_YORK[1] + 0.1)
    assert view(north) == pytest.approx((0, -distance_km(NEW_YORK, north)), rel=1e-3)
    x, y = view(east) or (0, 0)
    assert x == pytest.approx(distance_km(NEW_YORK, east), rel=1e-3)
    assert abs(y) < 0.01 * x


@given(PLACES)
def test_the_far_side_is_not_on_the_map(place: Place) -> None:
    view = partial(projected, (0, 0))
    is_near = distance_km((0, 0), place) < HALF_ROUND_KM * 2 / 3
    assert (view(place) is not None) == is_near
