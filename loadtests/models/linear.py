"""Solves linear equations by elimination, exactly for fractions, and fits by least squares."""

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import linear_regression
from typing import Any, TypeVar

Number = TypeVar("Number", bound=Fraction | float)


def solve(matrix: Sequence[Sequence[Number]], right: Sequence[Number]) -> list[Number]:
    """The x of `matrix`·x = `right`, by Gauss-Jordan elimination with the largest pivot.

    Raises ValueError if the equations have no single solution.
    """
    size = len(right)
    rows: list[list[Any]] = [[*matrix[row], right[row]] for row in range(size)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if rows[pivot][column] == 0:
            raise ValueError("the equations have no single solution")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        _clear(rows, column)
    return [rows[row][size] / rows[row][row] for row in range(size)]


def _clear(rows: list[list[Any]], column: int) -> None:
    """Make `column` zero in all rows but the one of the same number."""
    own = rows[column]
    for at, row in enumerate(rows):
        if at != column and row[column] != 0:
            factor = row[column] / own[column]
            rows[at] = [value - factor * mine for value, mine in zip(row, own, strict=True)]


def least_squares(
    rows: Sequence[Sequence[float]], values: Sequence[float], damping: float = 0.0
) -> list[float]:
    """The coefficients b with the least Σ (value − row·b)², by the normal equations.

    A constant is a column of ones. Columns are scaled to length 1; damping: added to the diagonal
    then (J. Marquardt, 1963). Raises ValueError for rows and values of unequal number, and if no
    single solution exists: fewer rows than columns, or columns that depend on each other.
    """
    if len(rows) != len(values) or not rows:
        raise ValueError(f"there are {len(rows)} rows and {len(values)} values")
    columns = list(zip(*rows, strict=True))
    lengths = [math.hypot(*column) or 1.0 for column in columns]
    scaled = [[v / length for v in column] for column, length in zip(columns, lengths, strict=True)]
    normal = [[_product(one, other) for other in scaled] for one in scaled]
    for at in range(len(normal)):
        normal[at][at] += damping
    found = solve(normal, [_product(column, values) for column in scaled])
    return [value / length for value, length in zip(found, lengths, strict=True)]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def line_and_exponential(
    xs: Sequence[float], ys: Sequence[float]
) -> tuple[list[float], list[float]]:
    """What a line a + b·x and an exponential a·e^(b·x) that are fitted to points have at each x."""
    line = linear_regression(xs, ys)
    logs = linear_regression(xs, [math.log(y) for y in ys])
    return (
        [line.intercept + line.slope * x for x in xs],
        [math.exp(logs.intercept + logs.slope * x) for x in xs],
    )
