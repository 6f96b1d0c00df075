"""Alpha shapes: Delaunay's rule, closed rings, concave where the points are."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from frontend.charts.outline import Point, outline, rings, triangles

GRID = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30)), unique=True, min_size=0, max_size=40
)


def scattered(points: list[tuple[int, int]]) -> list[Point]:
    """A little out of line, as airports are: four on a circle have no one triangulation."""
    return [(x + 0.013 * ((x * 7 + y * 13) % 17), y + 0.017 * (x * y % 19)) for x, y in points]


@given(GRID)
def test_no_point_lies_within_the_circle_of_a_triangle(places: list[tuple[int, int]]) -> None:
    points = scattered(places)
    for corners, (x, y, square) in triangles(points).items():
        for number, (u, v) in enumerate(points):
            if number not in corners:
                assert (u - x) ** 2 + (v - y) ** 2 >= square * (1 - 1e-9)


@given(GRID, st.floats(1, 20))
def test_rings_are_closed_and_use_each_edge_once(
    places: list[tuple[int, int]], radius: float
) -> None:
    found = outline(scattered(places), radius)
    edges = [frozenset(pair) for ring in found for pair in pairwise([*ring, ring[0]])]
    assert len(edges) == len(set(edges))
    assert all(len(edge) == 2 for edge in edges)
    assert all(len(ring) >= 3 for ring in found)


def block(left: int, top: int, width: int, height: int) -> list[tuple[int, int]]:
    return [(left + x, top + y) for x in range(width) for y in range(height)]


def area(points: list[Point], ring: list[int]) -> float:
    corners = [points[number] for number in [*ring, ring[0]]]
    return abs(sum(a * d - b * c for (a, b), (c, d) in pairwise(corners))) / 2


def test_the_outline_of_an_angle_is_an_angle() -> None:
    points = scattered(block(0, 0, 10, 3) + block(0, 3, 3, 7))
    (ring,) = outline(points, 1.5)
    hull = 9 * 9 / 2 + 2 * 9
    assert area(points, ring) < 0.75 * hull
    assert {0, points.index(scattered([(9, 0)])[0])} <= set(ring)


def test_far_islands_have_outlines_of_their_own() -> None:
    points = scattered(block(0, 0, 4, 4) + block(50, 0, 4, 4))
    found = outline(points, 2)
    assert sorted(len({number // 16 for number in ring}) for ring in found) == [1, 1]


def test_too_few_points_have_none() -> None:
    assert outline([], 1) == []
    assert outline([(0, 0), (1, 1)], 1) == []
    assert outline([(0, 0), (1, 1), (2, 2)], 9) == []


def test_two_rings_may_meet_in_a_point() -> None:
    found = rings([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)])
    assert sum(map(len, found)) == 6
