"""Covers an interval of days with few totals, those of years, months and days.

A period is a number within its span: a day is counted from 1970-01-01, a month is 12·year + month
- 1, and a year its own number. `cover` takes years where whole years fit, then months, then days:
at most 60 days, 22 months and one number a year for any interval.
"""

from datetime import date

DAY, MONTH, YEAR = 0, 1, 2

_EPOCH = date(1970, 1, 1).toordinal()

WEEKDAY = "({day} % 7 + 10) % 7"  # in SQL; 0 is Monday, and 1970-01-01 was a Thursday

Range = tuple[int, int, int]  # span, first period, last period (inclusive)


def day_number(day: date) -> int:
    """Return how many days after 1970-01-01 a day is."""
    return day.toordinal() - _EPOCH


def date_of(day: int) -> date:
    """Return the date of a day's number."""
    return date.fromordinal(day + _EPOCH)


def periods_of(day: date) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Return the (span, period) pairs that `day` counts in."""
    return (
        (DAY, day_number(day)),
        (MONTH, 12 * day.year + day.month - 1),
        (YEAR, day.year),
    )


def cover(initial: date, final: date, longest: int = YEAR) -> list[Range]:
    """Return periods that hold every day from `initial` to `final` (inclusive) exactly once.

    longest: the longest span to use. There are at most five ranges and none of them is empty. There
    is none if `initial` is after `final`.
    """
    if longest == DAY:
        return _range(DAY, day_number(initial), day_number(final))
    first_month = _month_from(initial)
    last_month = _month_up_to(final)
    if first_month > last_month:
        return _range(DAY, day_number(initial), day_number(final))
    first_year, last_year = -(-first_month // 12), (last_month + 1) // 12 - 1
    if first_year > last_year or longest == MONTH:
        whole = _range(MONTH, first_month, last_month)
    else:
        whole = (
            _range(MONTH, first_month, first_year * 12 - 1)
            + _range(YEAR, first_year, last_year)
            + _range(MONTH, (last_year + 1) * 12, last_month)
        )
    return (
        _range(DAY, day_number(initial), _first_day(first_month) - 1)
        + whole
        + _range(DAY, _first_day(last_month + 1), day_number(final))
    )


def _range(span: int, first: int, last: int) -> list[Range]:
    return [(span, first, last)] if first <= last else []


def _month_from(day: date) -> int:
    """Return the first month that starts on or after `day`."""
    return 12 * day.year + day.month - (1 if day.day == 1 else 0)


def _month_up_to(day: date) -> int:
    """Return the last month that ends on or before `day`."""
    tomorrow = date.fromordinal(day.toordinal() + 1)
    return 12 * tomorrow.year + tomorrow.month - 2


def _first_day(month: int) -> int:
    return day_number(date(month // 12, month % 12 + 1, 1))
