"""The outline of scattered points: their alpha shape. Pure.

Neighbouring points are joined to triangles (Delaunay); those whose points lie on a circle of more
than a certain radius are taken away; the outline is that of the remaining ones. (H. Edelsbrunner,
D. Kirkpatrick, R. Seidel, "On the shape of a set of points in the plane", 1983.)
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import hypot, inf

Point = tuple[float, float]
Triangle = tuple[int, int, int]
Edge = tuple[int, int]
Circle = tuple[float, float, float]  # x, y and the square of the radius


def outline(points: Sequence[Point], radius: float) -> list[list[int]]:
    """Closed rings of points, by their number. A place is inside if an odd number surrounds it.

    radius: of the largest circle that still joins three points, in the unit of the points.
    """
    found = triangles(points)
    edges = Counter(
        edge
        for triangle, (_, _, square) in found.items()
        if square <= radius**2
        for edge in combinations(triangle, 2)
    )
    return rings(edge for edge, count in edges.items() if count == 1)


def triangles(points: Sequence[Point]) -> dict[Triangle, Circle]:
    """The Delaunay triangles of different points and the circles through their corners.

    Bowyer and Watson's algorithm, which takes quadratic time: for hundreds of points.
    """
    extent = 1 + max((hypot(x, y) for x, y in points), default=0)
    corners = [*points, (-40 * extent, -30 * extent), (40 * extent, -30 * extent), (0, 50 * extent)]
    count = len(points)
    outer = (count, count + 1, count + 2)
    found = {outer: _circle(*(corners[corner] for corner in outer))}
    for number, (x, y) in enumerate(points):
        broken = [t for t, (u, v, square) in found.items() if (x - u) ** 2 + (y - v) ** 2 < square]
        edges = Counter(edge for triangle in broken for edge in combinations(triangle, 2))
        for triangle in broken:
            del found[triangle]
        for (one, other), times in edges.items():
            if times == 1:
                triangle = _sorted(one, other, number)
                found[triangle] = _circle(*(corners[corner] for corner in triangle))
    return {triangle: circle for triangle, circle in found.items() if triangle[2] < count}


def _sorted(one: int, other: int, third: int) -> Triangle:
    first, second, last = sorted((one, other, third))
    return first, second, last


def _circle(one: Point, other: Point, third: Point) -> Circle:
    """The circle through three points; infinitely large if they are on a line."""
    (ax, ay), (bx, by), (cx, cy) = one, other, third
    bx, by, cx, cy = bx - ax, by - ay, cx - ax, cy - ay
    twice_area = 2 * (bx * cy - by * cx)
    if twice_area == 0:
        return ax, ay, inf
    b, c = bx * bx + by * by, cx * cx + cy * cy
    x, y = (cy * b - by * c) / twice_area, (bx * c - cx * b) / twice_area
    return ax + x, ay + y, x * x + y * y


def rings(edges: Iterable[Edge]) -> list[list[int]]:
    """`edges` as closed rings. At each point an even number of edges must meet."""
    neighbours: dict[int, set[int]] = defaultdict(set)
    for one, other in edges:
        neighbours[one].add(other)
        neighbours[other].add(one)
    found = []
    for start, around in neighbours.items():
        while around:
            ring = [start]
            while ring[-1] != start or len(ring) == 1:
                here = ring[-1]
                ring.append(neighbours[here].pop())
                neighbours[ring[-1]].remove(here)
            found.append(ring[:-1])
    return found
