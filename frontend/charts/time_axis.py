"""The time axis of a chart and its table: an interval of days, cut into days, months or years.

All intervals include both of their days.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import islice

from frontend.coverage import Coverage
from frontend.filters import ordinal

MOST_SLOTS = 400  # in a chart and its table: somewhat more than a year of days

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Slot:
    """A piece of the time axis: a day, a month or a year. It may be cut at the axis's ends."""

    first: date
    last: date


KEY_LENGTH = {"day": 10, "month": 7, "year": 4}  # characters of an ISO date that tell its slot


@dataclass(frozen=True)
class TimeAxis:
    """A time axis. unit: "day", "month" or "year". slots: in order, without gaps between them."""

    unit: str
    slots: tuple[Slot, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each slot: "Tue 1 Jan 2013", "January 2013", "2013 until 14 June"."""
        return tuple(_NAME[self.unit](slot.first) + self._cut(slot) for slot in self.slots)

    @cached_property
    def incomplete(self) -> tuple[int, ...]:
        """The numbers of the months or years that are cut: at most the first and the last."""
        return tuple(place for place, slot in enumerate(self.slots) if self._cut(slot))

    def _cut(self, slot: Slot) -> str:
        """Return which days of a month or year there are; "" if there are all."""
        day_before = slot.first - _DAY
        begins = day_before == _END[self.unit](day_before)
        ends = slot.last == _END[self.unit](slot.last)
        if slot.first == slot.last and not (begins or ends):
            return f" on {_DAY_OF[self.unit](slot.first)}"
        since = "" if begins else f" from {_DAY_OF[self.unit](slot.first)}"
        return since if ends else f"{since} until {_DAY_OF[self.unit](slot.last)}"

    @cached_property
    def cuts(self) -> dict[str, str]:
        """Which days there are of each month or year, by its ISO name; "" if there are all."""
        return dict(zip(self._places, map(self._cut, self.slots), strict=True))

    @cached_property
    def _places(self) -> dict[str, int]:
        length = KEY_LENGTH[self.unit]
        return {slot.first.isoformat()[:length]: place for place, slot in enumerate(self.slots)}

    def place(self, iso: str) -> int:
        """Return the number of the slot in which a day lies. Raises KeyError if it lies in none."""
        return self._places[iso[: KEY_LENGTH[self.unit]]]


_DAY_OF: dict[str, Callable[[date], str]] = {
    "month": lambda day: f"the {ordinal(day.day)}",
    "year": lambda day: f"{day.day} {day:%B}",
}
"""A day within a month or year that is named before."""
_NAME: dict[str, Callable[[date], str]] = {
    "day": lambda day: f"{day:%a} {day.day} {day:%b %Y}",
    "month": lambda day: f"{day:%B %Y}",
    "year": lambda day: f"{day:%Y}",
}


def time_axis(first: date, last: date) -> TimeAxis:
    """Return an axis of days from `first` to `last`; above `MOST_SLOTS`, of months or years."""
    for unit in ("day", "month"):
        pieces = tuple(islice(slots(first, last, unit), MOST_SLOTS + 1))
        if len(pieces) <= MOST_SLOTS:
            return TimeAxis(unit, pieces)
    return TimeAxis("year", tuple(slots(first, last, "year")))


def in_days(time: TimeAxis) -> TimeAxis:
    return TimeAxis("day", tuple(slots(time.slots[0].first, time.slots[-1].last, "day")))


def slots(first: date, last: date, unit: str) -> Iterator[Slot]:
    """Return the days, months or years from `first` to `last`, which may cut the outer ones."""
    while first <= last:
        end = min(last, _END[unit](first))
        yield Slot(first, end)
        first = end + _DAY


_END: dict[str, Callable[[date], date]] = {
    "day": lambda day: day,
    "month": lambda day: day.replace(day=monthrange(day.year, day.month)[1]),
    "year": lambda day: day.replace(month=12, day=31),
}


def covered(
    asked_first: str, asked_last: str, known: Coverage, days: Sequence[str] = ()
) -> tuple[date, date]:
    """Return the ends of a question, without the time before or after all flights of the ledger.

    days: those of the answer, which may be newer than `known`.
    """
    ends = [end for end in (known.first_date, known.last_date, *days) if end]
    first, last = asked_first, asked_last
    if ends and min(ends) <= asked_last and max(ends) >= asked_first:
        first, last = max(asked_first, min(ends)), min(asked_last, max(ends))
    return date.fromisoformat(first), date.fromisoformat(last)
