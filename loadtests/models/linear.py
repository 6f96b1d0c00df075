"""Solves linear equations by elimination, exactly for fractions, and least squares."""

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul
from typing import Any, TypeVar

Number = TypeVar("Number", bound=Fraction | float)


def solve(matrix: Sequence[Sequence[Number]], right: Sequence[Number]) -> list[Number]:
    """The single x of `matrix`·x = `right`, by Gauss-Jordan elimination with the largest pivot."""
    size = len(right)
    rows: list[list[Any]] = [[*matrix[row], right[row]] for row in range(size)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if rows[pivot][column] == 0:
            raise ValueError("the equations have no single solution")
        own = rows[pivot]
        rows[column], rows[pivot] = own, rows[column]
        for at, row in enumerate(rows):
            if at != column and row[column] != 0:
                factor = row[column] / own[column]
                rows[at] = [value - factor * mine for value, mine in zip(row, own, strict=True)]
    return [rows[row][size] / rows[row][row] for row in range(size)]


def least_squares(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The coefficients b with the least Σ (value − row·b)², by the normal equations.

    A constant is a column of ones. There must be as many rows as columns at least, and no columns
    that depend on each other.
    """
    if len(rows) != len(values) or not rows:
        raise ValueError(f"there are {len(rows)} rows and {len(values)} values")
    columns = list(zip(*rows, strict=True))
    lengths = [math.hypot(*column) or 1.0 for column in columns]
    scaled = [[v / length for v in column] for column, length in zip(columns, lengths, strict=True)]

    def products(of: Sequence[float]) -> list[float]:
        return [math.fsum(map(mul, column, of)) for column in scaled]

    found = solve([products(column) for column in scaled], products(values))
    return [value / length for value, length in zip(found, lengths, strict=True)]
