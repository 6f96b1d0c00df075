"""Compares measurements with their targets, and shows them as a table.

Ratios are taken pair by pair, of measurements made one right after the other, because a machine
that others use is sometimes faster and sometimes slower. The figure is the median over the pairs; a
wide spread is called noisy.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import NamedTuple

from loadtests.number_format import format_number
from loadtests.wrk import Load

NOISY_SHARE = 0.2  # a spread from lowest to highest above this share of the median is noisy

Numbers = Sequence[float]
Loads = Sequence[Load]

_HEADINGS = ("row", "what", "measured", "target", "reached")
_REACHED = {"at least": operator.ge, "at most": operator.le, "under": operator.lt}


class Bound(NamedTuple):
    """Says what a median has to reach. words: `at least`, `at most`, `under`."""

    words: str
    value: float


at_least, at_most = partial(Bound, "at least"), partial(Bound, "at most")
Target = Bound | None


def spread(values: Numbers) -> str:
    """Return the median of measurements of the same thing, with the lowest and the highest."""
    middle, low, high = map(format_number, (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def and_best(values: Numbers) -> str:
    """Return the median of measurements of the same thing, and the highest."""
    return f"{format_number(median(values))}, best {format_number(max(values))}"


def is_noisy(values: Numbers) -> bool:
    """Return whether the measurements lie so wide apart that the median says little."""
    return max(values) - min(values) > NOISY_SHARE * median(values)


@dataclass(frozen=True, slots=True)
class Figure:
    """Holds a line of the table, with the names that it has in JSON.

    row: its number in the list of targets. reached: None if there is no target.
    """

    row: int
    what: str
    measured: str
    target: str = ""
    reached: bool | None = None
    noisy: bool = False

    @classmethod
    def judged(
        cls,
        row: int,
        what: str,
        values: float | Numbers,
        target: Target,
        *,
        unit: str = "",
        measured: str = "",
        failed: int = 0,
    ) -> "Figure":
        """Return the figure of a value, or of several, whose median has a target.

        measured: shown in place of the value or the spread. unit: of the target and the value.
        failed: requests that failed; then the target is not reached.
        """
        several = values if isinstance(values, Sequence) else [values]
        text = format_number(several[0]) if len(several) == 1 else spread(several)
        shown = measured or text + unit
        is_reached: bool | None = None
        if target:
            is_reached = not failed and _REACHED[target.words](median(several), target.value)
        return cls(
            row,
            what,
            f"{shown}, {failed} FAILED" if failed else shown,
            f"{target.words} {target.value:,g}{unit}" if target else "",
            is_reached,
            is_noisy(several),
        )


def ratio(
    row: int, what: str, above: Numbers, below: Numbers, target: Target, failed: int = 0
) -> Figure:
    """Return the figure of ratios, pair by pair. Raises ValueError for unequal numbers."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return Figure.judged(row, what, ratios, target, failed=failed)


def rate_ratio(row: int, what: str, above: Loads, below: Loads, target: Target) -> Figure:
    """Return the figure of a load's requests per second over those of another, round by round."""
    failed = failures([*above, *below])
    return ratio(row, what, rates(above), rates(below), target, failed)


def rates(loads: Loads) -> list[float]:
    return [load.requests_per_s for load in loads]


def failures(loads: Loads) -> int:
    return sum(load.failed for load in loads)


def table(figures: Sequence[Figure], *, is_meaningless: bool = False) -> str:
    """Return the figures in columns. is_meaningless: whether the run is too small for a target."""
    rows = [_HEADINGS, *(_cells(figure, is_meaningless) for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _cells(figure: Figure, is_meaningless: bool) -> tuple[str, ...]:
    reached = {True: "yes", False: "no", None: "-"}[figure.reached]
    if is_meaningless and figure.reached is not None:
        reached = "(too small to tell)"
    measured = f"{figure.measured}, noisy" if figure.noisy else figure.measured
    return (str(figure.row), figure.what, measured, figure.target or "-", reached)
