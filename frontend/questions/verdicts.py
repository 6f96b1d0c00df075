"""Which of several groups is the best by a measure, and whether that is more than chance. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import comb, sqrt

from frontend.filters import counted, number
from frontend.questions.figures import FEW_ARRIVALS
from frontend.questions.group_rows import PUNCTUALITY, SORTS, Measure, Row, in_order
from loadtests.models import student_t

LEAST_DAYS = 10  # on which a group must have flights for its days to show how much they scatter


@dataclass(frozen=True)
class Verdict:
    """The first and the last of groups in an order, in words.

    noun: what they are compared by. count: how many were compared. alike: how many others have the
    value of the first, and of the last. has_others: whether groups with few arrivals were left out.
    """

    sort: str
    noun: str
    is_descending: bool
    first: Row
    last: Row
    count: int
    alike: tuple[int, int]
    has_others: bool = False

    def __str__(self) -> str:
        first, last = self._values
        if first == last:
            return f"All have the same {self.noun} ({first}). {self.chance}".rstrip()
        ends = ("highest", "lowest") if self.is_descending else ("lowest", "highest")
        whom = f"Of those with {FEW_ARRIVALS} arrivals or more, " if self.has_others else ""
        first, last = (
            f"{value}, like {counted(others, 'other')}" if others else value
            for value, others in zip((first, last), self.alike, strict=True)
        )
        return (
            f"{whom}{self.first.name} has the {ends[0]} {self.noun} ({first}), "
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
        return f"{lead} {self.noun} is {first}, {of_last}. {self.chance}"

    @property
    def _measure(self) -> Measure:
        return SORTS[self.sort]

    @property
    def _values(self) -> tuple[str, str]:
        first, last = (self._measure.value(row) for row in (self.first, self.last))
        return self._measure.shown(first), self._measure.shown(last)

    @property
    def chance(self) -> str:
        """Whether the difference is more than chance, as a sentence; "" if that was not asked."""
        if not (self.first.days and self.last.days) or self.sort == "flights":
            return ""
        if self.interval is None:
            few = f"{LEAST_DAYS} days or {FEW_ARRIVALS} arrivals"
            return f"With fewer than {few}, a difference cannot be told from chance."
        unit = "points" if self._measure.of else "minutes"
        low, high = self._shown_interval
        judged = "more than chance" if low > 0 else "perhaps only chance"
        between = f"between {number(low, 1)} and {number(high, 1)} {unit}"
        why_wider = (
            f" for all {self.count} at once: the best and the worst of many differ more by chance, "
            "so this interval is wider than that of these two alone"
        )
        return (
            f"Judged by how days differ, this is {judged}: the difference is {between}, with "
            f"95\N{NO-BREAK SPACE}% confidence{why_wider if self.count > 2 else ''}."
        )

    @property
    def _shown_interval(self) -> tuple[float, float]:
        """The interval in points or minutes as pages write it, by which they judge chance."""
        low, high = self.interval or (0.0, 0.0)
        scale = 100 if self._measure.of else 1
        return round(scale * low, 1) + 0.0, round(scale * high, 1)  # + 0.0: -0.0 is 0.0

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the difference, at 95 % for all pairs of groups together (Bonferroni).

        It is positive if the first is better. Flights of one day are late together, so days are
        what is drawn: the variance is that of a ratio of sums over them (Cochran 1977, 6.8), and a
        day on which both have flights counts once. A share of none, or of all, has varied on no
        day: it counts as uncertain by one flight. None for a count, or without days enough.
        """
        groups = (self.first, self.last)
        if self.sort == "flights" or any(
            row.is_few or len(row.days) < LEAST_DAYS for row in groups
        ):
            return None
        values = [float(self._measure.value(row) or 0.0) for row in groups]
        first, last = (self._influences(*pair) for pair in zip(groups, values, strict=True))
        days = first.keys() | last.keys()
        squares = sum((first.get(day, 0.0) - last.get(day, 0.0)) ** 2 for day in days)
        if count := self._measure.of:
            moved = zip(groups, (first, last), strict=True)
            squares += sum(1 / g.figures[count] ** 2 for g, by in moved if not any(by.values()))
        deviation = sqrt(squares * len(days) / (len(days) - 1))
        least = min(len(first), len(last))
        half = student_t.quantile(1 - 0.025 / comb(self.count, 2), least - 1) * deviation
        gap = (values[0] - values[1]) * (1 if self.is_descending else -1)
        limit = 1.0 if self._measure.of else float("inf")
        return max(gap - half, -limit), min(gap + half, limit)

    def _influences(self, row: Row, value: float) -> dict[str, float]:
        """Return by how much each day moves the value of a group."""
        measure = self._measure
        count = measure.of or "arrived"
        of_days = {day["FL_DATE"]: Row({}, "", "", day) for day in row.days}
        return {
            name: ((measure.value(day) or 0.0) - value) * day.figures[count] / row.figures[count]
            for name, day in of_days.items()
        }


def verdict(
    rows: Iterable[Row],
    sort: str,
    *,
    noun: str = "",
    is_descending: bool | None = None,
    has_others: bool = False,
) -> Verdict | None:
    """Compare groups by a name of SORTS, in the order that is given, or the best first.

    noun, has_others: as in `Verdict`; by default that of the measure. None if fewer than two have
    flights.
    """
    if is_descending is None:
        is_descending = not SORTS[sort].is_low_good
    known = [row for row in rows if row.flights and SORTS[sort].value(row) is not None]
    ordered = in_order(known, sort, is_descending=is_descending)
    if len(ordered) < 2:
        return None
    values = [SORTS[sort].value(row) for row in ordered]
    alike = values.count(values[0]) - 1, values.count(values[-1]) - 1
    ends, noun = (ordered[0], ordered[-1]), noun or SORTS[sort].noun
    return Verdict(sort, noun, is_descending, *ends, len(ordered), alike, has_others)


def best_and_worst(rows: Iterable[Row], noun: str = "") -> Verdict | None:
    """Compare the groups with arrivals enough by their punctuality. noun: as of `verdict`."""
    groups = list(rows)
    enough = [row for row in groups if not row.is_few]
    return verdict(enough, PUNCTUALITY, noun=noun, has_others=len(enough) < len(groups))
