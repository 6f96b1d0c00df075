"""Days as a calendar: months of weeks, Mondays first."""

from calendar import Calendar
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Generic, NamedTuple, TypeVar

from frontend.charts.time_axis import slots

Item = TypeVar("Item")

MOST_DAYS = 731


class Month(NamedTuple, Generic[Item]):
    """A month. weeks: each has seven days, (ISO date, item) pairs; None is of another month."""

    name: str
    weeks: list[list[tuple[date, Item | None] | None]]


def months(items: Mapping[str, Item]) -> Iterator[Month[Item]]:
    """Yield the months from the first to the last day of `items`, which has one for each ISO date.

    Of more than MOST_DAYS days the last ones. Days without an item have None.
    """
    if not items:
        return
    last = date.fromisoformat(max(items))
    first = max(date.fromisoformat(min(items)), last - timedelta(MOST_DAYS - 1))
    for slot in slots(first, last, "month"):
        month = slot.first.month
        weeks = Calendar().monthdatescalendar(slot.first.year, month)
        yield Month(
            f"{slot.first:%B %Y}",
            [
                [(day, items.get(str(day))) if day.month == month else None for day in week]
                for week in weeks
            ],
        )
