"""Reads days as people write them, and finds out whether the day or the month comes first.

A year that comes first leaves no doubt. "02/03/2019" may be two days; which one is meant is decided
for a whole file: by a day above 12, or by a column with weekday, month or day. If nothing decides
it, the file is refused until the user does; and so it is if a later day can only be meant in
another order, as in files that were put together from two, or in which a spreadsheet took some days
for others. A number that counts from a day that the file does not name is no day: of 1900 or 1904
in Excel, 1960 in SAS and Stata, 1970 in R.
"""

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache

from backend.base.day_orders import DAY_FIRST, MONTH_FIRST, WRITTEN, YEAR_FIRST
from backend.base.errors import shown
from backend.sources.cells import unless_empty, weekday
from backend.sources.kinds import UnknownKindError
from backend.sources.source import Unusable

_S_A_DAY = 86_400
_EPOCH = re.compile(r"([1-9]\d{8,9})((?:000){0,3})(?:\.0)?", re.ASCII)  # in s, ms, µs or ns
_COUNT = re.compile(r"(\d{5}|\d{9,})(\.0)?", re.ASCII)  # 2019-03-04 is 43528 in Excel
_COUNTED = "is a number that counts from an unknown day; write days as YYYY-MM-DD"
_MONTHS = "january february march april may june july august september october november december"
_MONTH_OF = {name[:size]: n for n, name in enumerate(_MONTHS.split(), 1) for size in (3, None)}
_ZONE = r" ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)"  # midnight there, so the day is as it is written
_MIDNIGHT = rf"(?:[ T]0?0:00(?::00(?:\.0+)?)?(?:{_ZONE})?| 12:00(?::00)? ?[aA][mM])?"
_YEAR_FIRST = re.compile(
    rf"(\d{{4}})(?:([-/.])(\d{{1,2}})\2(\d{{1,2}}){_MIDNIGHT}|(\d\d)(\d\d)(?:\.0)?)", re.ASCII
)
_NAMED = re.compile(  # SAS adds a clock to 03JAN2008
    r"(?:([a-z]{3,9}),? )?"  # its weekday
    r"(?:(\d{1,2})([-/. ]?)([a-z]{3,9})\3|([a-z]{3,9}) {1,2}(\d{1,2}),? )(\d{4})"
    rf"(?::00:00:00|{_MIDNIGHT})",
    re.ASCII | re.IGNORECASE,
)
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}){_MIDNIGHT}", re.ASCII)
_SHORT = re.compile(r"(\d{1,2})([-/. ])(\d{1,2}|[a-z]{3,9})\2(\d{1,2})", re.ASCII | re.IGNORECASE)

Evidence = tuple[object, object, object, object]
"""A day as it is written, and what other columns say of it: month, day of month, weekday."""


def readings(value: object) -> dict[str, date]:
    """Return the days that `value` may mean, by their order; none if it is no day."""
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    text = text.removesuffix(".").replace(". ", ".")  # 4. 3. 2019, and 2019. 03. 04.
    if match := _YEAR_FIRST.fullmatch(text):
        year, _, month, day, bare_month, bare_day = match.groups()
        return _calendar_days({YEAR_FIRST: (year, month or bare_month, day or bare_day)})
    if match := _NAMED.fullmatch(text):
        weekday, day, _, name, other_name, other_day, year = match.groups("")
        month = _MONTH_OF.get((name or other_name).lower(), 0)
        days = _calendar_days({YEAR_FIRST: (year, month, day or other_day)})
        start = weekday[:3].lower()
        return {order: day for order, day in days.items() if f"{day:%A}".lower().startswith(start)}
    # The same digits in a table may be seconds or milliseconds since 1960, of SAS or Stata.
    match = _EPOCH.fullmatch(text)
    is_doubtful = isinstance(value, str) and match is not None and match[2] in {"", "000"}
    if match and not is_doubtful and int(match[1]) % _S_A_DAY == 0:
        return {YEAR_FIRST: date(1970, 1, 1) + timedelta(seconds=int(match[1]))}
    if match := _YEAR_LAST.fullmatch(text):
        first, _, second, year = match.groups()
        return _calendar_days(
            {MONTH_FIRST: (year, first, second), DAY_FIRST: (year, second, first)}
        )
    return {}


@lru_cache(maxsize=4000)
def is_year_first(value: object) -> bool:
    """Return whether the year comes first in a day."""
    return YEAR_FIRST in readings(value)


def _calendar_days(orders: dict[str, tuple[str, str | int, str]]) -> dict[str, date]:
    days = {}
    for order, (year, month, day) in orders.items():
        try:
            days[order] = date(int(year), int(month), int(day))
        except ValueError:
            continue
    return days


def iso_day(value: object, order: str | None) -> object:
    """Return `value` as YYYY-MM-DD; as `Unusable` if it is no day in this order.

    order: of a day whose year comes last; None if that is not known.
    """
    days = readings(value)
    if not days:
        reason = _COUNTED if _COUNT.fullmatch(str(value).strip()) else ""
        return value if value is None or value == "" else Unusable(value, reason)
    if YEAR_FIRST not in days and order is not None:
        if order in days:
            return days[order].isoformat()
        return Unusable(
            value, f"is not a valid {WRITTEN[order]}; correct it, or name the right order of dates"
        )
    if len(set(days.values())) == 1:
        return days.popitem()[1].isoformat()
    return Unusable(value, doubt(value))


def beside(row: tuple[object, object, object]) -> object:
    """Return the ISO day of a row; as `Unusable` if its month or day of the month contradict it."""
    day = row[0]
    known = readings(day).get(YEAR_FIRST)
    if known is None or _agrees(known, (*row, None)):
        return day
    return Unusable(
        day, "disagrees with the columns of month and day; correct it, or remove these columns"
    )


def is_short(day: object, whole: object) -> bool:
    """Return whether a day that is not usable is a whole one with a year of two digits."""
    if not (isinstance(day, Unusable) and isinstance(whole, str)):
        return False
    match = _SHORT.fullmatch(str(day.value).strip())
    parts = match.group(1, 3, 4) if match else ()
    numbers = [_MONTH_OF.get(part.lower(), 0) if part.isalpha() else int(part) for part in parts]
    return sorted(numbers) == sorted(map(int, whole[2:].split("-")))


def doubt(value: object, option: str = "--dates ") -> str:
    """Return what a day may be, and how to say which. option: that takes one of `ORDERS`."""
    either, other = (f"{day:%-d %B %Y}" for day in readings(value).values())
    return f"may be {either} or {other}; add {option}{MONTH_FIRST} or {option}{DAY_FIRST}"


class DoubtfulDatesError(UnknownKindError):
    """The days of a file can be read in two ways, or in none; the message says what to do.

    day: that may be two days; None if some days are in one order and some in the other.
    """

    def __init__(self, reason: str, day: object = None) -> None:
        super().__init__(reason)
        self.day = day


def order_of(batches: Iterable[Iterable[Evidence]], said: str = "") -> str | None:
    """Return in which order the days of a file are written, read no further than needed.

    None if all orders mean the same days. said: the order of days whose year comes last, or "".
    Raises DoubtfulDatesError if two orders fit, or each fits some rows that the other does not.
    """
    doubtful: object = None
    for batch in batches:
        fits = [(row[0], _fitting(row)) for row in dict.fromkeys(batch)]
        proofs = {next(iter(orders)): day for day, orders in fits if len(orders) == 1}
        if said and proofs.keys() != {YEAR_FIRST}:
            return said
        if len(proofs) > 1:
            days = " and ".join(f"{shown(proofs[order])} ({order})" for order in sorted(proofs))
            raise DoubtfulDatesError(f"has days in two orders, {days}; write all days in one order")
        if proofs:
            return next(iter(proofs))
        doubtful = next((day for day, orders in fits if len(orders) == 2), doubtful)
    if doubtful is None:
        return None  # all are days like 3/3, or none is a day
    reason = f"has days such as {shown(doubtful)}, which {doubt(doubtful)}"
    raise DoubtfulDatesError(reason, doubtful)


def _fitting(row: Evidence) -> set[str]:
    """Return the orders in which a day agrees with what other columns say of it."""
    days = readings(row[0])
    if is_year_first(row[0]):
        return {YEAR_FIRST}
    is_same_in_both = len(set(days.values())) == 1 and len(days) == 2
    return set() if is_same_in_both else _agreeing(row)


@lru_cache(maxsize=4000)
def contradiction(row: Evidence, order: str) -> str:
    """Return why a day cannot be in this order, although it is in another one; "" if it can."""
    agreeing = _agreeing(row)
    if not agreeing or order in agreeing:
        return ""
    return f"is not written {WRITTEN[order]}, as days before it are; write all days in one order"


def _agreeing(row: Evidence) -> set[str]:
    return {order for order, day in readings(row[0]).items() if _agrees(day, row)}


def _agrees(day: date, row: Evidence) -> bool:
    """Return whether no number in other columns contradicts a day."""
    parts = zip(row[1:], (day.month, day.day, day.isoweekday()), strict=True)
    return all(_number(cell) in (None, part) for cell, part in parts)


def _number(cell: object) -> float | None:
    """Return the number in a cell; None if there is none."""
    try:
        return float(str(weekday(unless_empty(cell))))
    except ValueError:
        return None
