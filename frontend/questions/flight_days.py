"""Finds the days on which a flight number flew: asks the backend about some days at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from frontend.coverage import Coverage
from frontend.questions.flights_of_day import Leg

MOST_DAYS_ASKED = 62

LegsByDay = Mapping[str, list[Leg]]  # ISO date -> its legs; days without legs are left out
AskDays = Callable[[str, str], LegsByDay]  # from the first and the last day, both included


@dataclass(frozen=True, slots=True)
class Day:
    """A day and the legs on it. is_covered: whether the ledger covers that day."""

    date: str
    legs: list[Leg]
    is_covered: bool = True


def plus(day: str, days: int) -> str:
    """Return the ISO date so many days later; where the calendar ends, its end."""
    try:
        return (date.fromisoformat(day) + timedelta(days)).isoformat()
    except OverflowError:
        return (date.max if days > 0 else date.min).isoformat()


def around(day: str, legs: list[Leg], days: int, known: Coverage, ask: AskDays) -> list[Day]:
    """Return `day`, whose `legs` are known, and so many `days` before and after it."""
    by_day = {**_covered(plus(day, -days), plus(day, days), known, ask), day: legs}
    others = (plus(day, offset) for offset in range(-days, days + 1))
    return [Day(other, by_day.get(other, []), known.covers(other)) for other in others]


def nearest(day: str, most: int, known: Coverage, ask: AskDays) -> list[Day]:
    """Return up to `most` covered days with legs close to `day`, in order, without `day` itself."""
    middle = min(max(day, known.first_date or ""), known.last_date or day)
    reach = MOST_DAYS_ASKED // 2
    by_day = _covered(plus(middle, -reach), plus(middle, reach), known, ask)

    def distance(other: str) -> tuple[timedelta, str]:
        return abs(date.fromisoformat(other) - date.fromisoformat(middle)), other

    closest = sorted(by_day.keys() - {day}, key=distance)[:most]
    return [Day(other, by_day[other]) for other in sorted(closest)]


def _covered(first: str, last: str, known: Coverage, ask: AskDays) -> LegsByDay:
    """Return the legs of the days that the ledger covers."""
    first, last = max(first, known.first_date or ""), min(last, known.last_date or "")
    return ask(first, last) if first <= last else {}
