"""Figures: measurements compared with their targets, as a table for people and as JSON.

Ratios are taken pair by pair, of measurements made one right after the other, because a machine
that others use is sometimes faster and sometimes slower. The figure is the median over the pairs; a
wide spread is called noisy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from loadtests.wrk import Load

NOISY_SHARE = 0.2  # a spread from lowest to highest above this share of the median is noisy

_HEADINGS = ("row", "what", "measured", "target", "reached")


@dataclass(frozen=True, slots=True)
class Spread:
    """The lowest, median and highest of some measurements of the same thing."""

    lowest: float
    median: float
    highest: float

    @property
    def is_noisy(self) -> bool:
        """Whether the measurements lie so wide apart that the median says little."""
        return self.highest - self.lowest > NOISY_SHARE * self.median

    def __str__(self) -> str:
        return f"{short(self.median)} ({short(self.lowest)} to {short(self.highest)})"


def spread_of(values: Iterable[float]) -> Spread:
    """The spread of `values`. Raises ValueError if there are none."""
    found = sorted(values)
    if not found:
        raise ValueError("a spread needs at least one value")
    return Spread(found[0], median(found), found[-1])


def pairwise(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """The ratios of values measured in pairs. Raises ValueError for lists of unequal length."""
    return [a / b for a, b in zip(above, below, strict=True)]


def with_failures(text: str, failed: int) -> str:
    """`text`, and, if requests failed, how many."""
    return f"{text}, {failed} FAILED" if failed else text


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table.

    row: its number in the list of targets. is_reached: None if there is no target. raw: the numbers
    that the figure was made from, by names that carry their units.
    """

    row: int
    what: str
    measured: str
    target: str = ""
    is_reached: bool | None = None
    is_noisy: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The whole figure, for a file."""
        return {
            "row": self.row,
            "what": self.what,
            "measured": self.measured,
            "target": self.target,
            "reached": self.is_reached,
            "noisy": self.is_noisy,
            "raw": dict(self.raw),
        }


def ratio_figure(
    row: int,
    what: str,
    ratios: Sequence[float],
    raw: Mapping[str, Any],
    *,
    least: float | None = None,
    most: float | None = None,
    failed: int = 0,
) -> Figure:
    """The ratios of pairs against the `least` or `most` that their median may be, if any.

    failed: requests that failed; then the target is not reached.
    """
    spread, target, is_reached = spread_of(ratios), "", None
    if least is not None:
        target, is_reached = f"at least {least:g}", spread.median >= least and not failed
    elif most is not None:
        target, is_reached = f"at most {most:g}", spread.median <= most and not failed
    measured = with_failures(str(spread), failed)
    return Figure(
        row, what, measured, target, is_reached, spread.is_noisy, {"ratios": list(ratios), **raw}
    )


def rate_ratio_figure(
    row: int,
    what: str,
    loads: tuple[Sequence[Load], Sequence[Load]],
    raw: Mapping[str, Any],
    *,
    least: float | None = None,
    most: float | None = None,
) -> Figure:
    """Requests per second of the first load relative to those of the second, round by round."""
    ratios, failed = pairwise(*map(rates, loads)), sum(map(failures, loads))
    return ratio_figure(row, what, ratios, raw, least=least, most=most, failed=failed)


def rates(loads: Sequence[Load]) -> list[float]:
    """Requests per second of each round of a load."""
    return [load.requests_per_s for load in loads]


def failures(loads: Sequence[Load]) -> int:
    """How many requests failed in all rounds of a load."""
    return sum(load.failed for load in loads)


def short(value: float) -> str:
    """A number for people: three significant digits, thousands separated."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(figures: Sequence[Figure], *, is_meaningless: bool = False) -> str:
    """The figures in columns. is_meaningless: whether the run is too small to tell anything."""
    rows = [_HEADINGS, *(_cells(figure, is_meaningless) for figure in figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _cells(figure: Figure, is_meaningless: bool) -> tuple[str, ...]:
    reached = {True: "yes", False: "no", None: "-"}[figure.is_reached]
    if is_meaningless and figure.is_reached is not None:
        reached = "(too small to tell)"
    measured = f"{figure.measured}, noisy" if figure.is_noisy else figure.measured
    return (str(figure.row), figure.what, measured, figure.target or "-", reached)


def details(figures: Iterable[Figure]) -> str:
    """The raw numbers, below the name of the figure that was made from them."""
    lines: list[str] = []
    for figure in figures:
        lines.append(f"row {figure.row}: {figure.what}")
        lines += [f"    {name}: {_shown(value)}" for name, value in figure.raw.items()]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list | tuple):
        return " ".join(_shown(one) for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
