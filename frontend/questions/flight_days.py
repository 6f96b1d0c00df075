"""Finds the days on which a flight number flew: asks the backend day by day, within a bound."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from frontend.coverage import Coverage
from frontend.questions.flights_of_day import Leg

MOST_DAYS_ASKED = 62

AskDay = Callable[[str], list[Leg]]  # from an ISO date to the legs of that day


@dataclass(frozen=True, slots=True)
class Day:
    """A day and the legs on it. is_covered: whether the ledger covers that day."""

    date: str
    legs: list[Leg]
    is_covered: bool = True


@dataclass(frozen=True, slots=True)
class DaysFlown:
    """The days on which a number flew. first, last: the days that were asked about ("" if none).

    earlier: the day before which to go on asking; "" if there is none.
    """

    flown: list[Day]
    first: str = ""
    last: str = ""
    earlier: str = ""


def plus(day: str, days: int) -> str:
    """Return the ISO date so many days later; where the calendar ends, its end."""
    try:
        return (date.fromisoformat(day) + timedelta(days)).isoformat()
    except OverflowError:
        return (date.max if days > 0 else date.min).isoformat()


def around(day: str, legs: list[Leg], days: int, known: Coverage, ask: AskDay) -> list[Day]:
    """`day`, whose `legs` are known, and so many `days` before and after it."""
    others = [plus(day, offset) for offset in range(-days, days + 1)]
    return [
        Day(other, legs, known.covers(other))
        if other == day
        else Day(other, ask(other) if known.covers(other) else [], known.covers(other))
        for other in others
    ]


def last_before(before: str, most: int, known: Coverage, ask: AskDay) -> DaysFlown:
    """The last covered days before `before` with legs, the newest first, at most `most` of them."""
    if not known.first_date or not known.last_date:
        return DaysFlown([])
    newest = min(plus(before, -1), known.last_date)
    flown: list[Day] = []
    oldest = ""
    for day in _backwards(newest, known.first_date):
        oldest = day
        legs = ask(day)
        flown += [Day(day, legs)] if legs else []
        if len(flown) == most:
            break
    earlier = oldest if oldest > known.first_date else ""
    return DaysFlown(flown, oldest, newest if oldest else "", earlier)


def nearest(day: str, most: int, known: Coverage, ask: AskDay) -> list[Day]:
    """Up to `most` covered days with legs close to `day`, in order; `day` itself is left out."""
    flown: list[Day] = []
    for other in _outwards(day, known):
        if legs := ask(other):
            flown.append(Day(other, legs))
        if len(flown) == most:
            break
    return sorted(flown, key=lambda day: day.date)


def _backwards(newest: str, first: str) -> Iterator[str]:
    for back in range(MOST_DAYS_ASKED):
        day = plus(newest, -back)
        if day < first:
            return
        yield day


def _outwards(day: str, known: Coverage) -> Iterable[str]:
    """Return the covered days without `day`, the closest first."""
    if not known.first_date or not known.last_date:
        return []
    middle = min(max(day, known.first_date), known.last_date)
    steps = (step for back in range(MOST_DAYS_ASKED // 2 + 1) for step in (-back, back))
    days = dict.fromkeys(plus(middle, step) for step in steps)
    return [other for other in days if other != day and known.covers(other)]
