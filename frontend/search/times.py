"""Reads days, months and years as people write them. Pure.

A month or a day without a year means the latest one that is not after the newest day of the
ledger.
"""

import re
from calendar import Calendar, monthrange
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import MINYEAR, date

from frontend import filters

MONTHS = tuple(f"{date(1, month, 1):%B}".lower() for month in range(1, 13))
_LETTERS = 3  # of a month that are enough
_MONTHS_SHORT = [name[:_LETTERS] for name in MONTHS]
HOURS = 24
BEFORE_NOON = {"a", "morning"}
SHORT_YEAR = 2  # digits of "8.3.13"
SHORT_YEARS_AHEAD = 20  # of the ledger's newest day; a later year is of the century before


@dataclass(frozen=True, slots=True, order=True)
class Days:
    """The days from `first` to `last`, both included. has_year: whether the text named the year.

    meant: what was written for the ledger's last day, such as "yesterday"; it may be another one.
    other: the day that "5/6" is if its numbers are read in the other order.
    """

    first: date
    last: date
    has_year: bool = field(default=True, compare=False)
    meant: str = field(default="", compare=False)
    other: date | None = field(default=None, compare=False)

    @property
    def is_one(self) -> bool:
        return self.first == self.last

    @property
    def name(self) -> str:
        """A name such as "July 2013", "2013", "5 July 2013", "3 to 5 July 2013"."""
        return filters.short_interval(self.first.isoformat(), self.last.isoformat())

    @property
    def iso(self) -> str:
        """The days as "2013-07-05" or "2013-07-03 to 2013-07-05"."""
        return " to ".join(dict.fromkeys((self.first.isoformat(), self.last.isoformat())))

    @property
    def phrase(self) -> str:
        """The name with the word in front of it that a sentence needs: "in July 2013"."""
        if self.is_one:
            return f"on {self.name}"
        return f"from {self.name}" if " to " in self.name else f"in {self.name}"

    def in_year(self, year: int) -> "Days":
        """Return the one day or month in `year`.

        Raises ValueError for others and where there is none.
        """
        if self.is_one:
            return replace(self, first=self.first.replace(year), last=self.last.replace(year))
        if self == month_of(self.first.year, self.first.month):
            return month_of(year, self.first.month)
        raise ValueError

    def within(self, first: date, last: date) -> "Days | None":
        """Return the part from `first` to `last`, both included; None if there is none."""
        part = Days(max(self.first, first), min(self.last, last))
        return part if part.first <= part.last else None


def interval(first: Days, last: Days) -> Days | None:
    """Return the days from the beginning of `first` to the end of `last`; None if there are none.

    Where only one of them has a year, the other lies as close as possible: "November to February
    2013" begins in 2012. "10 January to 5 January" is a slip, and no year less five days. "Summer
    2012-2013" may be two summers.
    """
    of_year = _months(1, 12)
    if last == of_year(last.first.year) and first != of_year(first.first.year):
        return None
    if not first.has_year and first.first > last.last and first.first.month == last.last.month:
        return None
    try:
        if not first.has_year and first.first > last.last:
            first = first.in_year(last.last.year - (first.in_year(last.last.year) > last))
        elif first.has_year and not last.has_year:
            last = last.in_year(first.first.year + (last.in_year(first.first.year) < first))
    except ValueError:
        return None
    meant = " and ".join(dict.fromkeys(filter(None, (first.meant, last.meant))))
    days = Days(first.first, last.last, meant=meant, other=first.other or last.other)
    return days if days.first <= days.last else None


def month_of(year: int, month: int) -> Days:
    return Days(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def _days_of(year: int, month: int, first: int, last: int) -> Days:
    """Return days of one month. Raises ValueError if the month has no such days."""
    if first > last:
        raise ValueError
    return Days(date(year, month, first), date(year, month, last))


def _nth(month: int, weekday: int, nth: int) -> Callable[[int], Days]:
    """Return the nth weekday of a month, from 0 for Monday, of any year; -1 is the last one."""

    def of_year(year: int) -> Days:
        days = [week[weekday] for week in Calendar().monthdayscalendar(year, month)]
        day = [day for day in days if day][nth]
        return _days_of(year, month, day, day)

    return of_year


def _on(month: int, day: int) -> Callable[[int], Days]:
    return lambda year: _days_of(year, month, day, day)


def _months(first: int, last: int) -> Callable[[int], Days]:
    """Return the months of any year; those from December to February end in that year."""
    return lambda year: Days(date(year - (first > last), first, 1), month_of(year, last).last)


NAMED: Mapping[str, Callable[[int], Days]] = {
    **{f"q{quarter + 1}": _months(3 * quarter + 1, 3 * quarter + 3) for quarter in range(4)},
    "winter": _months(12, 2),
    "spring": _months(3, 5),
    "summer": _months(6, 8),
    **dict.fromkeys(("autumn", "fall"), _months(9, 11)),
    **dict.fromkeys(("new year's day", "new years day", "new year"), _on(1, 1)),
    **dict.fromkeys(("martin luther king day", "mlk day"), _nth(1, 0, 2)),
    "valentine's day": _on(2, 14),
    **dict.fromkeys(("presidents' day", "president's day", "presidents day"), _nth(2, 0, 2)),
    "memorial day": _nth(5, 0, -1),
    **dict.fromkeys(("independence day", "fourth of july"), _on(7, 4)),
    "labor day": _nth(9, 0, 0),
    "columbus day": _nth(10, 0, 1),
    "halloween": _on(10, 31),
    **dict.fromkeys(("veterans day", "veterans' day"), _on(11, 11)),
    **dict.fromkeys(("thanksgiving day", "thanksgiving"), _nth(11, 3, 3)),
    "christmas eve": _on(12, 24),
    **dict.fromkeys(("christmas day", "christmas", "xmas"), _on(12, 25)),
    **dict.fromkeys(("new year's eve", "new years eve"), _on(12, 31)),
}


def hour_at(text: str, at: int) -> tuple[int | None, int] | None:
    """Return the hour of the day that is written from place `at`, and the place of its end.

    There may be no such hour: "13 am", "25:00". None if none is written.
    """
    match = _HOUR.match(text, at)
    if match is None:
        return None
    hour = int(match["hour"] or 12 * (match["named"].lower() == "noon"))
    half = (match["half"] or match["part"] or "").lower()
    is_none = hour >= HOURS or (half in BEFORE_NOON and hour > HOURS // 2)
    if half and 1 <= hour <= HOURS // 2:
        hour = hour % (HOURS // 2) + HOURS // 2 * (half not in BEFORE_NOON)
    return None if is_none else hour, match.end()


def amount_at(text: str, at: int) -> tuple[str, int] | None:
    """Return what no page tells that is written from place `at`, and the place of its end.

    That is a number of things, or which flights of many: "5 hours", "first", "last flight".
    """
    match = _AMOUNT.match(text, at)
    return (match[0], match.end()) if match else None


def times_at(text: str, at: int, newest: date) -> tuple[list[Days], int] | None:
    """Return what the longest text from place `at` that names days may mean, and its end.

    "5/6" is a day in either order, as in the United States first; "13/2" is in one, and
    "30 February" in none: it is not February. Nor is a Friday that was a Saturday; without a year
    it is the latest that was one. None if there is no such text.
    """
    meanings: dict[int, dict[Days, None]] = {}
    for pattern in _PATTERNS:
        if match := pattern.match(text, at):
            days = meanings.setdefault(match.end(), {})
            with suppress(ValueError):
                days[_days(match.groupdict(), newest)] = None
    if not meanings:
        return None
    end = max(meanings)
    named = list(meanings[end])
    if len(named) > 1:
        named = [replace(days, other=named[nth - 1].first) for nth, days in enumerate(named)]
    return named, end


def _days(parts: dict[str, str | None], newest: date) -> Days:
    """Return the days for the texts of year, month and day. Raises ValueError if there are none."""
    if meant := parts.get("meant"):
        return Days(newest, newest, meant=meant)
    year, month, day = (parts.get(name) for name in ("year", "month", "day"))
    if year and len(year) == SHORT_YEAR:
        latest = newest.year + SHORT_YEARS_AHEAD
        year = str(latest - (latest - int(year)) % 100)
    if year and (before := parts.get("before")) and (int(year) - int(before)) % 100 != 1:
        raise ValueError
    if named := parts.get("named"):
        return _latest(year, newest, NAMED[named.lower()])
    if month is None:
        return _months(1, 12)(int(year or 0))
    named_month = month[:_LETTERS].lower()
    number = int(month) if month.isdigit() else _MONTHS_SHORT.index(named_month) + 1
    if day is None:
        return _latest(year, newest, lambda in_year: month_of(in_year, number))
    last, weekday = parts.get("last") or day, parts.get("weekday")

    def of_year(in_year: int) -> Days:
        days = _days_of(in_year, number, int(day), int(last))
        if weekday and weekday[:_LETTERS].lower() != f"{days.first:%a}".lower():
            raise ValueError
        return days

    return _latest(year, newest, of_year)


def _latest(year: str | None, newest: date, days: Callable[[int], Days]) -> Days:
    """Return the days in `year`; without one, the latest that begin at `newest` or before."""
    if year is not None:
        return days(int(year))
    for in_year in range(newest.year, max(newest.year - 5, MINYEAR), -1):  # 29 February is rare
        try:
            latest = days(in_year)
        except ValueError:
            continue
        if latest.first <= newest:
            return replace(latest, has_year=False)
    raise ValueError


# --- the table --------------------------------------------------------------------------------

DASH_OF_INTERVAL = (  # in "2007-2008", "1/15-1/17"
    r"(?:(?<=(?<![-/.\d])(?:19|20)\d\d)-(?=(?:19|20)\d\d(?![-/.]?\d))"
    r"|(?:(?<=/\d)|(?<=/\d\d)|(?<=/\d{4}))-(?=\d{1,2}/\d{1,2}(?!\d)))"
)
_YEAR = r"(?P<year>\d{4})"
_NO_HOUR = r"(?!:\d| ?[ap]\.?m\b)"
_SHORT = rf"(?:(?<=')|(?<=[a-z]-))\d\d|(?<=[\d,] )0\d{_NO_HOUR}"  # "'13", "Jul-13", "5 08"
_IN_YEAR = rf"(?:(?:,? (?:in |of )?|-|(?='))'?(?P<year>\d{{4}}|{_SHORT}))?"  # "of 2013"
_NUMBER = r"(?P<month>\d{1,2})"
_ANY_YEAR = r"(?P<year>\d{4}|\d\d)"
_DAY = r"(?P<day>\d{1,2})"
_NAME = rf"(?P<month>{'|'.join([*MONTHS, 'sept', *_MONTHS_SHORT])})\.?"
_ENDING = r"(?:st|nd|rd|th)?\.?"
_NTH = rf"(?:the )?{_DAY}{_ENDING}"
_BETWEEN = r"(?P<between>(?<=between ))?"
_UP_TO = r"(?(between) and |(?: ?[-–—→] ?| (?:to|through|until|till) ))"
_SOME = rf"{_NTH}{_UP_TO}(?:the )?(?P<last>\d{{1,2}}){_ENDING}"
_WEEKDAY = r"(?:(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_NAMED = rf"(?P<named>{'|'.join(sorted(NAMED, key=len, reverse=True))})"
_EITHER_ORDER = tuple(
    pattern
    for first, second in ((_NUMBER, _DAY), (_DAY, _NUMBER))
    for pattern in (rf"{first}/{second}(?:/{_ANY_YEAR})?", rf"{first}-{second}-{_ANY_YEAR}")
)
_HOUR = re.compile(
    r"(?:(?P<said>at|around) )?(?:(?:12 )?(?P<named>noon|midnight)\b|(?P<hour>\d{1,2})(?:"
    r"(?<!flight \d)(?<!flight \d\d)"  # "8 in the morning", but not "flight 8 in the morning"
    r"(?::[0-5]\d| o'clock)? in the (?P<part>morning|afternoon|evening)\b"
    r"|(?::[0-5]\d)? ?(?P<half>[ap])\.?m\b\.?|:[0-5]\d\b(?! ?[ap]\.?m)| o'clock\b"
    r"|(?:(?<=\bat \d\d)|(?<=\bat \d))[0-5]\d(?![^\W_]|[-/.:]\d)"  # "at 0800"
    r"|(?(said)(?![^\W_]|[-/.:]\d)|(?!))))",  # "at 8", but not "8"
    re.ASCII | re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"\d{1,2}(?:-| (?:and|to) )\d{1,2} ?[ap]\.?m\b\.?"  # "6 and 9 am"
    r"|(?:in )?\d+ (?:hours?|minutes?|mins?|days|weeks|months|years|flights)\b|why\b"
    r"|long(?= flights?\b)|than (?:the )?average\b"
    r"|\d+(?= (?:airlines|carriers|airports|cities|routes)\b)"
    rf"|(?:early|mid|late)(?=[ -](?:{'|'.join((*MONTHS, *_MONTHS_SHORT))})\b)"
    r"|(?:first|last|next|early|earliest|latest|fastest|slowest)(?: flights?)?\b",
    re.ASCII | re.IGNORECASE,
)
_PATTERNS = tuple(
    re.compile(rf"{text}(?![^\W_]|(?!{DASH_OF_INTERVAL})[-/.]\d)", re.ASCII | re.IGNORECASE)
    for text in (
        r"(?P<meant>today|yesterday|tomorrow|tonight|now)",
        rf"(?:{_NAMED}|{_NAME}){_IN_YEAR}",
        rf"{_NAMED} (?P<year>0\d){_NO_HOUR}",  # "winter 08", but "July 08" is a day
        rf"(?P<named>winter) (?:of )?(?P<before>\d{{4}}|\d\d)(?: ?[-–/] ?| to ){_ANY_YEAR}",
        rf"{_YEAR}[-/.]{_NUMBER}(?:[-/.]{_DAY})?",
        rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d)",
        *_EITHER_ORDER,
        rf"{_DAY}\.{_NUMBER}\.{_ANY_YEAR}?",
        rf"{_WEEKDAY}{_NTH}[ -]?(?:of )?{_NAME}{_IN_YEAR}",
        rf"{_WEEKDAY}{_DAY} ?{_NAME} ?(?P<year>\d\d){_NO_HOUR}",  # "05JAN13"
        rf"{_WEEKDAY}{_NAME}[ -]?{_NTH}{_IN_YEAR}",
        rf"{_BETWEEN}{_SOME} (?:of )?{_NAME}{_IN_YEAR}",
        rf"{_BETWEEN}{_NAME} {_SOME}{_IN_YEAR}",
        rf"(?=19|20){_YEAR}[ -](?:{_NAMED}|{_NAME}(?:[ -]{_NTH})?)",  # but "1545 July" is a flight
        rf"{_NUMBER}[-/.]{_YEAR}",
        _YEAR,
        r"'(?P<year>\d\d)",
    )
)
