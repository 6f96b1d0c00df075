"""Defines by what an answer can be broken down, and which of the groups are shown.

    day, month, year       when the flight was
    weekday                1 (Monday) to 7 (Sunday)
    hour                   of the scheduled departure, which is DEP_TIME less DEP_DELAY
    weekday_hour           both together
    carrier
    origin, destination    airports
    route                  from one airport to another
    departure              a flight number on a route, and when it was scheduled to leave

A group has a key: the values of the columns that tell it apart. A flight without DEP_TIME or
DEP_DELAY, as most cancelled ones are, has no known hour of scheduled departure: it is in no group
by hour, and by departure in one without a time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TypeVar

from backend.chain.fields import Value

Key = tuple[Value, ...]
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Group:
    """One way to break an answer down.

    names: of the members that show a key. columns: those of a flight from which `key_of` makes
    the key. is_period: whether keys are shown in their own order, not by the number of flights.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    key_of: Callable[..., Key]
    is_period: bool = False

    @property
    def is_by_hour(self) -> bool:
        """Whether flights without a known hour are in no group."""
        return "hour" in self.names


def scheduled_minute(dep_time: Value, dep_delay: Value) -> int | None:
    """Return the minute (0 to 1439) at which a flight was to depart, perhaps on another day.

    dep_time: as hhmm. dep_delay: in minutes.
    """
    if dep_time is None or dep_delay is None:
        return None
    hours, minutes = divmod(int(dep_time), 100)
    return (60 * hours + minutes - int(dep_delay)) % 1440


def scheduled_hour(dep_time: Value, dep_delay: Value) -> int | None:
    """Return the hour (0 to 23) at which a flight was to depart; see `scheduled_minute`."""
    minute = scheduled_minute(dep_time, dep_delay)
    return None if minute is None else minute // 60


def clock_time(minute: int | None) -> str:
    """Return a minute of the day as hhmm; "" for None."""
    return "" if minute is None else f"{minute // 60:02}{minute % 60:02}"


@lru_cache(maxsize=4096)
def weekday_of(day: str) -> int:
    """Return the weekday of an ISO date, from 1 (Monday) to 7."""
    return date.fromisoformat(day).isoweekday()


def _as_it_is(*values: Value) -> Key:
    return values


def _departure(*values: Value) -> Key:
    *flight, dep_time, dep_delay = values
    return (*flight, clock_time(scheduled_minute(dep_time, dep_delay)))


_AIRPORT = ("ORIGIN", "ORIGIN_CITY_NAME")
_TO_AIRPORT = ("DEST", "DEST_CITY_NAME")
_FLIGHT = ("OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST")

GROUPS: Mapping[str, Group] = {
    "day": Group(("FL_DATE",), ("FL_DATE",), _as_it_is, is_period=True),
    "weekday": Group(
        ("DAY_OF_WEEK",), ("FL_DATE",), lambda day: (weekday_of(day),), is_period=True
    ),
    "hour": Group(
        ("hour",),
        ("DEP_TIME", "DEP_DELAY"),
        lambda time, delay: (scheduled_hour(time, delay),),
        is_period=True,
    ),
    "weekday_hour": Group(
        ("DAY_OF_WEEK", "hour"),
        ("FL_DATE", "DEP_TIME", "DEP_DELAY"),
        lambda day, time, delay: (weekday_of(day), scheduled_hour(time, delay)),
        is_period=True,
    ),
    "month": Group(("month",), ("FL_DATE",), lambda day: (day[:7],), is_period=True),
    "year": Group(("YEAR",), ("FL_DATE",), lambda day: (int(day[:4]),), is_period=True),
    "carrier": Group(("OP_CARRIER_AIRLINE_ID",), ("OP_CARRIER_AIRLINE_ID",), _as_it_is),
    "origin": Group(_AIRPORT, _AIRPORT, _as_it_is),
    "destination": Group(_TO_AIRPORT, _TO_AIRPORT, _as_it_is),
    "route": Group(_AIRPORT + _TO_AIRPORT, _AIRPORT + _TO_AIRPORT, _as_it_is),
    "departure": Group((*_FLIGHT, "departure"), (*_FLIGHT, "DEP_TIME", "DEP_DELAY"), _departure),
}


@dataclass(frozen=True, slots=True)
class Shown:
    """Which groups an answer shows, and in which order.

    sort: a member of a group by which they are ordered; None: periods are ordered as they follow
    each other, others by their flights. order: "ascending" or "descending"; None is the usual one,
    which is ascending, but the most flights first without `sort`. least_flights: groups with fewer
    are left out.
    offset, limit: the first one that is shown, and how many at most.
    """

    sort: str | None = None
    order: str | None = None
    least_flights: int = 0
    offset: int = 0
    limit: int | None = None

    @property
    def is_largest_first(self) -> bool:
        """Whether groups that are ordered by a figure begin with the largest."""
        return self.order == "descending" or (self.sort is None and self.order is None)

    def page(self, groups: Sequence[Item]) -> list[Item]:
        """Return the part of an ordered list that is shown."""
        end = None if self.limit is None else self.offset + self.limit
        return list(groups[self.offset : end])


EVERYTHING = Shown()
