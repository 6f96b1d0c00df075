"""Which of several groups is the best by a measure, and whether that is more than chance. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist

from frontend.filters import number
from frontend.questions.group_rows import PUNCTUALITY, SORTS, Measure, Row, in_order


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first and the last of groups in an order, in words. count: how many were compared."""

    sort: str
    is_descending: bool
    first: Row
    last: Row
    count: int

    def __str__(self) -> str:
        first, last = self._values
        ends = ("highest", "lowest") if self.is_descending else ("lowest", "highest")
        return (
            f"{self.first.name} has the {ends[0]} {self._measure.noun} ({first}), "
            f"{self.last.name} the {ends[1]} ({last}). {self.chance}"
        ).rstrip()

    @property
    def better(self) -> str:
        """Which of two groups is better, by how much, and by which measure, as sentences."""
        if self.interval is None or self.count > 2:
            return str(self)
        first, last = self._values
        name = self.first.name
        lead = (
            f"{name} is better: its"
            if self._shown_interval[0] > 0
            else f"Neither is clearly better: {name}'s"
        )
        of_last = f"that of {self.last.name} is {last}"
        return f"{lead} {self._measure.noun} is {first}, {of_last}. {self.chance}"

    @property
    def _measure(self) -> Measure:
        return SORTS[self.sort]

    @property
    def _values(self) -> tuple[str, str]:
        first, last = (self._measure.value(row) for row in (self.first, self.last))
        return self._measure.shown(first), self._measure.shown(last)

    @property
    def chance(self) -> str:
        """Whether the difference is more than chance, as a sentence; "" for a count."""
        if self.interval is None:
            return ""
        unit = "points" if self._measure.of else "minutes"
        low, high = self._shown_interval
        judged = "more than chance" if low > 0 else "perhaps only chance"
        between = f"between {number(low, 1)} and {number(high, 1)} {unit}"
        return f"The difference is {judged}: {between}, with 95\N{NO-BREAK SPACE}% confidence."

    @property
    def _shown_interval(self) -> tuple[float, float]:
        """The interval in points or minutes as pages write it, by which they judge chance."""
        low, high = self.interval or (0.0, 0.0)
        scale = 100 if self._measure.of else 1
        return round(scale * low, 1) + 0.0, round(scale * high, 1)  # + 0.0: -0.0 is 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the difference, at 95 % for all pairs of groups together (Bonferroni)."""
        first, last = (self._measure.estimate(row) for row in (self.first, self.last))
        if first is None or last is None:
            return None
        reach = NormalDist().inv_cdf(1 - 0.025 / comb(self.count, 2))
        gap, half = abs(first[0] - last[0]), reach * sqrt(first[1] + last[1])
        return gap - half, gap + half


def verdict(rows: Iterable[Row], sort: str, *, is_descending: bool | None = None) -> Verdict | None:
    """Compare groups by a name of SORTS, in the order that is given, or the best first.

    None if fewer than two have flights.
    """
    if is_descending is None:
        is_descending = not SORTS[sort].is_low_good
    known = [row for row in rows if row.flights and SORTS[sort].value(row) is not None]
    ordered = in_order(known, sort, is_descending=is_descending)
    if len(ordered) < 2:
        return None
    return Verdict(sort, is_descending, ordered[0], ordered[-1], len(ordered))


def best_and_worst(rows: Iterable[Row]) -> Verdict | None:
    """Compare the groups with arrivals enough by their punctuality."""
    return verdict((row for row in rows if not row.is_few), PUNCTUALITY)
