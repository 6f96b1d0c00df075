"""Reads days as people write them, and finds out whether the day or the month comes first.

A year that comes first leaves no doubt. "02/03/2019" may be two days; which one is meant is decided
for a whole file: by a day above 12, or by a column with weekday, month or day. If nothing decides
it, the file is refused until the user does; and so it is if a later day can only be meant in the
other order, as in files that were put together from two, or if a spreadsheet may have taken some
days for others. A number that counts from a day that the file does not name is no day: of 1900 or
1904 in Excel, 1960 in SAS and Stata, 1970 in R.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date, timedelta

from backend.base.day_orders import DAY_FIRST, MONTH_FIRST, WRITTEN, YEAR_FIRST
from backend.base.errors import InvalidInput, shown
from backend.base.lru import remembered
from backend.sources.cells import BLANK, numbers_of, unless_empty, weekday
from backend.sources.kinds import UnknownKindError
from backend.sources.source import Unusable

_S_A_DAY = 86_400
_EPOCH = re.compile(r"([1-9]\d{8,9})((?:000){0,3})(?:\.0)?", re.ASCII)  # in s, ms, µs or ns
_COUNT = re.compile(r"(\d{5}|\d{9,})(\.0)?", re.ASCII)  # 2019-03-04 is 43528 in Excel
_COUNTED = "is a number that counts from an unknown day; write days as YYYY-MM-DD"
_NO_DAY = "is not a day of the calendar"
_MONTHS = "january february march april may june july august september october november december"
_MONTH_OF = numbers_of(_MONTHS)
_OFFSET = r"[+-]\d\d(?::?\d\d)?(?: \([A-Za-z ]+\))?"  # JavaScript adds the name of its zone
_ZONE = rf" ?(?:Z|(?:UTC|GMT)?{_OFFSET}|UTC|GMT)"  # midnight there, so the day is as it is written
_TWELVE = rf"12:00(?::00)?{BLANK}[aA]\.?{BLANK}[mM]\.?"
_MIDNIGHT = rf"(?:(?:,? |T)0?0:00(?::00(?:\.0+)?)?(?:{_ZONE})?|,? {_TWELVE})?"
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
FROM_SUNDAY = "1 = Sunday"
_COUNTINGS: Mapping[str, Callable[[int], int]] = {
    "0 = Monday": lambda weekday: weekday - 1,  # in pandas
    FROM_SUNDAY: lambda weekday: weekday % 7 + 1,  # in SQL, R and spreadsheets
}
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


@remembered(4000)
def forms(value: object) -> Set[bool]:
    """Return whether the year comes first in a day; neither of both if it is no day."""
    days = readings(value)
    return {YEAR_FIRST in days} if days else set()


def have_year_first(values: Iterable[object]) -> bool:
    """Return whether some are days, and in all of these the year comes first."""
    return set().union(*map(forms, values)) == {True}


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
    if value is None or value == "":
        return value
    days = readings(value)
    if not days:
        reasons = {_COUNT: _COUNTED, _YEAR_FIRST: _NO_DAY, _YEAR_LAST: _NO_DAY}
        text = str(value).strip()
        reason = next((reason for form, reason in reasons.items() if form.fullmatch(text)), "")
        return Unusable(value, reason)
    if YEAR_FIRST not in days and order is not None:
        if order in days:
            return days[order].isoformat()
        return Unusable(
            value, f"is not a valid {WRITTEN[order]}; correct it, or name the right order of dates"
        )
    if len(set(days.values())) == 1:
        return days.popitem()[1].isoformat()
    return Unusable(value, f"{doubt(value)}; {choice()}")


def counting(batches: Iterable[Iterable[Evidence]], order: str) -> str:
    """Return from what all weekdays are counted, if not from 1 = Monday; "" if that is not sure.

    order: of the days, or "". Some that leave no doubt must be Sundays and Mondays.
    """
    fits, sure = set(_COUNTINGS), set[int]()
    for batch in batches:
        for day, _, _, cell in (rows := set(batch)):
            days, count = readings(day), _number(cell)
            weekdays = {days[o].isoweekday() for o in ({order} & days.keys() or days)}
            if count is not None and weekdays:
                fits = {
                    name for name in fits if count in {_COUNTINGS[name](day) for day in weekdays}
                }
                sure |= weekdays if len(weekdays) == 1 else set()
        if not (rows and fits):
            return ""
    return fits.pop() if {1, 7} <= sure else ""


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


class DoubtfulDaysError(InvalidInput):
    """The days of a file may be meant in two orders, and nothing in it decides which.

    day: one of them. doubt: the reason. answer: how the user says which order is meant.
    """

    def __init__(self, file: object, day: object, doubt: str, answer: str) -> None:
        super().__init__("file", file, f"{doubt}; {answer}")
        self.day = day
        self.doubt = doubt

    def answered_by(self, answer: str) -> "DoubtfulDaysError":
        """Return the same refusal with another way to answer it."""
        return DoubtfulDaysError(self.value, self.day, self.doubt, answer)


def doubt(value: object) -> str:
    """Return what a day may be that can be read in two orders."""
    either, other = (f"{day:%-d %B %Y}" for day in readings(value).values())
    return f"may be {either} or {other}"


def choice(option: str = "--dates ", how: str = "add") -> str:
    """Return how to say in which order days are written. option: that takes one of `ORDERS`."""
    return f"{how} {option}{MONTH_FIRST} or {option}{DAY_FIRST}"


def order_of(batches: Iterable[Iterable[Evidence]]) -> str | None:
    """Return in which order the days of a file are written, read no further than needed.

    `YEAR_FIRST` if it is that of all days in the first batch; None if all orders mean the same
    days. Raises UnknownKindError if both orders fit, or each fits some rows that the other does
    not.
    """
    doubtful: object = None
    for number, batch in enumerate(batches):
        rows = list(dict.fromkeys(batch))
        if number == 0 and have_year_first(row[0] for row in rows):
            return YEAR_FIRST
        fits = [(row[0], _fitting(row)) for row in rows]
        proofs = {next(iter(orders)): day for day, orders in fits if len(orders) == 1}
        proofs.pop(YEAR_FIRST, None)
        if len(proofs) > 1:
            days = " and ".join(f"{shown(proofs[order])} ({order})" for order in sorted(proofs))
            raise UnknownKindError(f"has days in two orders, {days}; write all days in one order")
        if proofs:
            _require_agreement(rows, sum(len(orders) == 1 for _, orders in fits))
            return next(iter(proofs))
        doubtful = next((day for day, orders in fits if len(orders) == 2), doubtful)
    if doubtful is None:
        return None  # all are days like 3/3, or none is a day
    reason = f"has days such as {shown(doubtful)}, which {doubt(doubtful)}"
    raise UnknownKindError(reason, doubtful)


def _require_agreement(rows: Iterable[Evidence], agreeing: int) -> None:
    """Raise UnknownKindError if other columns contradict more days than agree with one order.

    Such columns mean something else, as months that count from 0, and agree by chance.
    """
    wrong = [row[0] for row in rows if readings(row[0]) and not _agreeing(row)]
    if len(wrong) > agreeing:
        reason = f"has days such as {shown(wrong[0])}, which a column of month, day or weekday"
        raise UnknownKindError(f"{reason} contradicts; remove that column")


def swapped(rows: Iterable[Evidence]) -> str:
    """Return why a spreadsheet may have swapped days and months, where it could; "" if it has not.

    rows: of a whole file, in which some days have the year first and others do not. A spreadsheet
    that has the month first makes 2019-04-03 of 04/03/2019, and leaves 13/03/2019 as it is.
    """
    changed: object = None
    left: object = None
    for row in rows:
        days = readings(row[0])
        if len(days) > 1 or (YEAR_FIRST in days and (any(row[1:]) or days[YEAR_FIRST].day > 12)):
            return ""
        if YEAR_FIRST in days:
            changed = row[0]
        elif days:
            left = row[0]
    if left is None:
        return ""
    reason = f"has days such as {shown(changed)}; all others, such as {shown(left)}, are above 12"
    what = "a spreadsheet may have swapped days and months; write all days as YYYY-MM-DD"
    return f"{reason}; {what}"


def _fitting(row: Evidence) -> set[str]:
    """Return the orders in which a day agrees with what other columns say of it."""
    days = readings(row[0])
    is_same_in_both = len(set(days.values())) == 1 and len(days) == 2
    return set() if is_same_in_both else _agreeing(row)


def contradiction(row: Evidence, order: str) -> str:
    """Return why a day cannot be in this order, although it is in another one; "" if it can."""
    agreeing = _agreeing(row)
    if not agreeing or agreeing & {order, YEAR_FIRST}:
        return ""
    what = f"cannot be {WRITTEN[order]}, the order in which the file is read"
    return f"{what}; write all days in one order, or name the right one"


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
