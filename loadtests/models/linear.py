"""Systems of linear equations by elimination: exact for fractions, and for floats as they are."""

from collections.abc import Sequence
from fractions import Fraction
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
    """Makes `column` zero in every row but its own."""
    own = rows[column]
    for at, row in enumerate(rows):
        if at != column and row[column] != 0:
            factor = row[column] / own[column]
            rows[at] = [value - factor * mine for value, mine in zip(row, own, strict=True)]
