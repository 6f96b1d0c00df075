"""Numbers, days and times as people read them. Every function is a filter in templates."""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from flask import Flask

NOTHING = "–"  # shown where there is no value
LAST_MS = 253_402_300_799_999  # of the year 9999, with which calendars end
HASH_DIGITS_SHOWN = 12
_BEGINS_WITH_A_WORD = re.compile(
    r"(?!\w+ (['\"]).*\1: )[a-z]+(['’-][a-z]+)*[,;:.!?]?(\s|$)", re.DOTALL
)
"""Not: "http://127.0.0.1:8080", "q 'a': is given more than once"."""

_ISO_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


def install(app: Flask) -> None:
    for template_filter in (
        *(counted, number, weekday, share, one_in, minutes, local_time, day, days_written_out),
        *(short_day, plus, age, due, moment, short, size, sentence),
    ):
        app.add_template_filter(template_filter)
    app.jinja_env.globals["short_interval"] = short_interval


def number(value: float | None, digits: int = 0) -> str:
    """Return 1234567 as "1,234,567"."""
    return NOTHING if value is None else f"{value:z,.{digits}f}".replace("-", "−")


def ordinal(value: int) -> str:
    """Return 14 as "14th"."""
    ending = "th" if value // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


def share(value: float | None) -> str:
    """Return 0.8312 as "83.1 %", whose space does not break."""
    return NOTHING if value is None else f"{100 * value:.1f}\N{NO-BREAK SPACE}%"


def one_in(share: float | None) -> str:
    """Return a share as a chance in words: 0.21 -> "1 in 5", 0.96 -> "24 in 25", 1.0 -> "all".

    A share of ten or fewer is exact.
    """
    if not share or share == 1:
        return NOTHING if share is None else "all" if share else "none"
    if 0.1 < share < 0.9:
        nearest = Fraction(share).limit_denominator(10)
        return f"{nearest.numerator} in {nearest.denominator}"
    count = round(1 / min(share, 1 - share))
    return f"{1 if share < 0.5 else count - 1:,} in {count:,}"


def minutes(value: float | None, digits: int = 0) -> str:
    """Return a delay or duration: 11 -> "11 min", -11 -> "11 min early"."""
    if value is None:
        return NOTHING
    rounded = round(value, digits)
    return f"{number(abs(rounded), digits)} min{' early' if rounded < 0 else ''}"


def local_time(hhmm: str | None) -> str:
    """Return "0517" as "05:17"."""
    return NOTHING if not hhmm else f"{hhmm[:2]}:{hhmm[2:]}"


def day(iso: str | None) -> str:
    """Return "2013-01-01" as "Tuesday, 1 January 2013"."""
    if not iso:
        return NOTHING
    when = date.fromisoformat(iso)
    return f"{when:%A}, {when.day} {when:%B} {when:%Y}"


def days_written_out(text: str) -> str:
    """Return a text of the service with its ISO dates as `day` writes them."""
    return _ISO_DATE.sub(lambda date: day(date[0]), text)


def weekday(iso: str) -> str:
    """Return "2013-01-01" as "Tuesday"."""
    return f"{date.fromisoformat(iso):%A}"


def short_day(iso: str) -> str:
    """Return "2013-01-01" as "Tue 1 Jan"."""
    when = date.fromisoformat(iso)
    return f"{when:%a} {when.day} {when:%b}"


def plus(day: str, days: int) -> str:
    """Return the ISO date so many days later; where the calendar ends, its end."""
    try:
        return (date.fromisoformat(day) + timedelta(days)).isoformat()
    except OverflowError:
        return (date.max if days > 0 else date.min).isoformat()


def short_interval(first: str, last: str) -> str:
    """Return two ISO dates as "3 to 9 July 2013", a whole month or year as "July 2013", "2013"."""
    start, stop = date.fromisoformat(first), date.fromisoformat(last)
    end = f"{stop.day} {stop:%B} {stop:%Y}"
    if start == stop:
        return end
    if start.day == 1 and stop.day == monthrange(stop.year, stop.month)[1]:
        if (start.year, start.month) == (stop.year, stop.month):
            return f"{stop:%B %Y}"
        if (start.month, stop.month) == (1, 12):
            return f"{start:%Y}" if start.year == stop.year else f"{start:%Y} to {stop:%Y}"
    if start.year != stop.year:
        return f"{start.day} {start:%B} {start:%Y} to {end}"
    return (
        f"{start.day} to {end}" if start.month == stop.month else f"{start.day} {start:%B} to {end}"
    )


def moment(milliseconds: int | None) -> str:
    """Return UTC milliseconds as "2013-01-01 05:17:23 UTC"."""
    if milliseconds is None:
        return NOTHING
    if milliseconds > LAST_MS:
        return "after the year 9999"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def age(milliseconds: int | None) -> str:
    """Return how long ago UTC milliseconds were: "4 seconds ago", "in 12 seconds", "3 days ago"."""
    if milliseconds is None:
        return NOTHING
    seconds = datetime.now(UTC).timestamp() - milliseconds / 1000
    text = duration(abs(seconds))
    if text == "0 seconds":
        return "just now"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def due(milliseconds: int) -> str:
    """Return when UTC milliseconds will be: "in 12 seconds", or "any moment" if they are over."""
    words = age(milliseconds)
    return words if words.startswith("in ") else "any moment"


def duration(seconds: float) -> str:
    """Return seconds in the largest unit that fits: "59 seconds", "1 minute", "3 days"."""
    for unit, length_s in (
        ("year", 365.25 * 86400),
        ("month", 30.44 * 86400),
        ("day", 86400),
        ("hour", 3600),
        ("minute", 60),
    ):
        if seconds >= length_s:
            return counted(int(seconds / length_s), unit)
    return counted(int(seconds), "second")


def counted(count: int, unit: str) -> str:
    """Return 1191 of "flight" as "1,191 flights"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Return a number of bytes in words: "16 MB", "64 KB", "1 byte"."""
    for unit, unit_bytes in (("MB", 2**20), ("KB", 2**10)):
        if count >= unit_bytes:
            return f"{count / unit_bytes:.4g} {unit}"
    return counted(count, "byte")


def short(text: str) -> str:
    return text[:HASH_DIGITS_SHOWN] + "…" if len(text) > HASH_DIGITS_SHOWN else text


def sentence(text: str) -> str:
    """Return "there is no block 9" as "There is no block 9."; an address or a name stays small."""
    start = text[:1].upper() if _BEGINS_WITH_A_WORD.match(text) else text[:1]
    return f"{start}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
