"""Days as a calendar: months of weeks, Mondays first."""

from calendar import Calendar
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

MOST_MONTHS = 25


class Month(NamedTuple, Generic[Item]):
    """A month. weeks: each has seven days, (ISO date, item) pairs; None is of another month.

    is_after_gap: whether months before it are left out, because they have no items.
    """

    name: str
    weeks: list[list[tuple[date, Item | None] | None]]
    is_after_gap: bool


def months(items: Mapping[str, Item]) -> Iterator[Month[Item]]:
    """Yield the months that have any of `items`, which has one for each ISO date.

    Of more than MOST_MONTHS months the last ones. Days without an item have None.
    """
    before = None
    for name in sorted({day[:7] for day in items})[-MOST_MONTHS:]:
        first = date.fromisoformat(f"{name}-01")
        weeks = [
            [(day, items.get(str(day))) if day.month == first.month else None for day in week]
            for week in Calendar().monthdatescalendar(first.year, first.month)
        ]
        is_after_gap = before not in {None, f"{first - timedelta(1):%Y-%m}"}
        yield Month(f"{first:%B %Y}", weeks, is_after_gap)
        before = name
