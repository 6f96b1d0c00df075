"""Intervals of days: the ones that are offered as links, and how a long one is cut for a chart.

All intervals include both of their days.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from frontend.coverage import Coverage

MOST_SLOTS = 400  # of a chart and its table: a year of days, and some
MOST_MONTHS_OFFERED = 14
LAST_DAYS = 7

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Interval:
    """first, last: ISO dates."""

    name: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A piece of the time axis: a day, a month or a year. May be cut at the axis's ends."""

    first: date
    last: date


KEY_LENGTH = {"day": 10, "month": 7, "year": 4}  # of an ISO date, that says which slot it lies in


@dataclass(frozen=True)
class TimeAxis:
    """unit: "day", "month" or "year". slots: in order, without gaps between them."""

    unit: str
    slots: tuple[Slot, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of each slot: "Tue 1 Jan 2013", "January 2013", "2013"."""
        return tuple(_NAME[self.unit](slot.first) for slot in self.slots)

    @cached_property
    def _places(self) -> dict[str, int]:
        length = KEY_LENGTH[self.unit]
        return {slot.first.isoformat()[:length]: place for place, slot in enumerate(self.slots)}

    def place(self, iso: str) -> int:
        """Which slot that day lies in. Raises KeyError if it lies in none."""
        return self._places[iso[: KEY_LENGTH[self.unit]]]


_NAME: dict[str, Callable[[date], str]] = {
    "day": lambda day: f"{day:%a} {day.day} {day:%b %Y}",
    "month": lambda day: f"{day:%B %Y}",
    "year": lambda day: f"{day:%Y}",
}


def time_axis(first: date, last: date) -> TimeAxis:
    """The days from `first` to `last`; months or years if they were more than `MOST_SLOTS`."""
    for unit in ("day", "month"):
        slots = _slots(first, last, unit)
        if len(slots) <= MOST_SLOTS:
            return TimeAxis(unit, slots)
    return TimeAxis("year", _slots(first, last, "year"))


def _slots(first: date, last: date, unit: str) -> tuple[Slot, ...]:
    """The first MOST_SLOTS and one more: enough to see that they are too many."""
    found: list[Slot] = []
    while first <= last and (len(found) <= MOST_SLOTS or unit == "year"):
        end = min(last, _END[unit](first))
        found.append(Slot(first, end))
        first = end + _DAY
    return tuple(found)


_END: dict[str, Callable[[date], date]] = {
    "day": lambda day: day,
    "month": lambda day: _month_after(day) - _DAY,
    "year": lambda day: day.replace(month=12, day=31),
}


def _month_after(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def whole(known: Coverage) -> dict[str, str]:
    """The days of a question that names none: all that the ledger has."""
    if not known.first_date or not known.last_date:
        return {}
    return {"INITIAL_DATE": known.first_date, "FINAL_DATE": known.last_date}


def shown(asked_first: str, asked_last: str, known: Coverage, days: list[str]) -> TimeAxis:
    """The axis for what was asked, without what lies before or after all flights of the ledger.

    days: those that the answer has, which may be newer than `known`.
    """
    ends = [end for end in (known.first_date, known.last_date, *days) if end]
    first, last = asked_first, asked_last
    if ends and min(ends) <= asked_last and max(ends) >= asked_first:
        first, last = max(asked_first, min(ends)), min(asked_last, max(ends))
    return time_axis(date.fromisoformat(first), date.fromisoformat(last))


def offered(known: Coverage, looked_at: str | None = None) -> list[Interval]:
    """Everything, the last days, and months; years, too, if there are many months.

    looked_at: an ISO date; its year's months are among them.
    """
    if not known.first_date or not known.last_date:
        return []
    first, last = date.fromisoformat(known.first_date), date.fromisoformat(known.last_date)
    found = [("All days", first, last)]
    if (last - first).days >= LAST_DAYS:
        found.append((f"Last {LAST_DAYS} days", last - (LAST_DAYS - 1) * _DAY, last))
    months = [(f"{part.first:%B %Y}", part.first, part.last) for part in _months(first, last)]
    if len(months) > MOST_MONTHS_OFFERED:
        found += [(str(s.first.year), s.first, s.last) for s in _slots(first, last, "year")]
        year = (looked_at or known.last_date)[:4]
        months = [month for month in months if month[0].endswith(year)]
    found += months
    return [Interval(name, one.isoformat(), other.isoformat()) for name, one, other in found]


def _months(first: date, last: date) -> list[Slot]:
    """All months, however many."""
    found: list[Slot] = []
    while first <= last:
        found.append(Slot(first, min(last, _END["month"](first))))
        first = _month_after(first)
    return found
