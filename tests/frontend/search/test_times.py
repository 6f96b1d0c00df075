"""Days, months and years as people write them."""

from datetime import date

from frontend.search.times import Days, interval, times_at
from tests.cases import each_of

NEWEST = date(2013, 12, 20)
FIFTH = ("2013-01-05", "2013-01-05")
WEEK = ("2013-07-01", "2013-07-07")
JULY = ("2013-07-01", "2013-07-31")

TIMES: dict[str, tuple[str, str] | None] = {
    "2013-01-05": FIFTH,
    "2013-1-5": FIFTH,
    "2013/01/05": FIFTH,
    "20130105": FIFTH,
    "5 Jan 2013": FIFTH,
    "5. January 2013": FIFTH,
    "5th of January, 2013": FIFTH,
    "Saturday, 5 January 2013": FIFTH,
    "Sat 5 Jan": FIFTH,
    "saturday january 5, 2013": FIFTH,
    "Jan 5 '13": FIFTH,
    "5 Jan. '13": FIFTH,
    "5 January, '13": FIFTH,
    "Thursday 5 January": ("2012-01-05", "2012-01-05"),
    "Friday 5 January 2013": None,
    "Fri. January 5": None,
    "Jan 5, 2013": FIFTH,
    "january 5": FIFTH,
    "Jan. 5th 2013": FIFTH,
    "5-Jan-2013": FIFTH,
    "5-Jan-13": FIFTH,
    "Sat, 5 Jan 13": FIFTH,
    "05JAN13": FIFTH,
    "05Jan": FIFTH,
    "Jan-5": FIFTH,
    "Jan.5": FIFTH,
    "Jan5, 2013": FIFTH,
    "2013.01.05": FIFTH,
    "January 5, 08": ("2008-01-05", "2008-01-05"),
    "January 5 08": ("2008-01-05", "2008-01-05"),
    "Jan-13": ("2013-01-01", "2013-01-31"),
    "01-2013": ("2013-01-01", "2013-01-31"),
    "May-85": ("1985-05-01", "1985-05-31"),
    "1/5/2013": FIFTH,
    "1/5/13": FIFTH,
    "1-5-2013": FIFTH,
    "5.1.2013": FIFTH,
    "5.1.": FIFTH,
    "13/2/2013": ("2013-02-13", "2013-02-13"),
    "13/2": ("2013-02-13", "2013-02-13"),
    "13-02-2013": ("2013-02-13", "2013-02-13"),
    "13.02.13": ("2013-02-13", "2013-02-13"),
    "3/8/87": ("1987-03-08", "1987-03-08"),
    "July 2013": JULY,
    "july": JULY,
    "Jul. 2013": JULY,
    "July of 2013": JULY,
    "2013 july": JULY,
    "2013-Jul": JULY,
    "2013 Jan 5": FIFTH,
    "2013 January 5th": FIFTH,
    "2012 Q3": ("2012-07-01", "2012-09-30"),
    "2013 February 30": None,
    "July '13": JULY,
    "July'13": JULY,
    "'13": ("2013-01-01", "2013-12-31"),
    "summer '99": ("1999-06-01", "1999-08-31"),
    "winter 08": ("2007-12-01", "2008-02-29"),
    "2013-07": JULY,
    "2013-7": JULY,
    "7/2013": JULY,
    "07.2013": JULY,
    "Sept 2013": ("2013-09-01", "2013-09-30"),
    "February": ("2013-02-01", "2013-02-28"),
    "December": ("2013-12-01", "2013-12-31"),
    "December 24": ("2012-12-24", "2012-12-24"),
    "29 February": ("2012-02-29", "2012-02-29"),
    "2013": ("2013-01-01", "2013-12-31"),
    "Christmas": ("2012-12-25", "2012-12-25"),
    "christmas day 2013": ("2013-12-25", "2013-12-25"),
    "Thanksgiving": ("2013-11-28", "2013-11-28"),
    "memorial day": ("2013-05-27", "2013-05-27"),
    "MLK day": ("2013-01-21", "2013-01-21"),
    "Presidents' Day": ("2013-02-18", "2013-02-18"),
    "Fourth of July": ("2013-07-04", "2013-07-04"),
    "columbus day": ("2013-10-14", "2013-10-14"),
    "Veterans Day": ("2013-11-11", "2013-11-11"),
    "Labor Day in 2012": ("2012-09-03", "2012-09-03"),
    "New Year's Eve": ("2012-12-31", "2012-12-31"),
    "summer": ("2013-06-01", "2013-08-31"),
    "winter 2013": ("2012-12-01", "2013-02-28"),
    "winter 2012-2013": ("2012-12-01", "2013-02-28"),
    "Winter of 2012/13": ("2012-12-01", "2013-02-28"),
    "winter 99/00": ("1999-12-01", "2000-02-29"),
    "winter 2012 to 2013": ("2012-12-01", "2013-02-28"),
    "winter 2010-2013": None,
    "Q3 of 2012": ("2012-07-01", "2012-09-30"),
    "30/2/2013": None,
    "13/13/2013": None,
    "2013-02-29": None,
    "20130229": None,
    "201301055": None,
    "February 30": None,
    "30 February": None,
    "June 31, 2013": None,
    "July 7 to 1": None,
    "2013-13": None,
    "5 Foo 2013": None,
    "0000": None,
    "Julyish": None,
    "33": None,
    "July 1 to 7": WEEK,
    "July 1-7, 2013": WEEK,
    "July 1st through 7th": WEEK,
    "1-7 July": WEEK,
    "1 – 7 July 2013": WEEK,
    "1st to 7th of July": WEEK,
    "7 to 1 July": None,
    "1 to 40 July": None,
}


def dates(days: Days) -> tuple[str, str]:
    return days.first.isoformat(), days.last.isoformat()


@each_of(("text", "expected"), TIMES.items())
def test_a_text_names_these_days(text: str, expected: tuple[str, str] | None) -> None:
    times = times_at(text, 0, NEWEST)
    assert (dates(times[0][0]) if times and times[0] else None) == expected
    assert times is None or times[1] == len(text)


def test_both_days_behind_between_belong_together() -> None:
    text = "between July 1 and 7"
    times = times_at(text, len("between "), NEWEST)
    assert times is not None
    assert (dates(times[0][0]), times[1]) == (WEEK, len(text))


def test_days_are_found_inside_a_text_and_end_where_they_end() -> None:
    text = "UA in July 2013 only"
    times = times_at(text, 6, NEWEST)
    assert times is not None
    assert (dates(times[0][0]), text[times[1] :]) == (JULY, " only")


INTERVALS = {
    ("march", "may"): ("2013-03-01", "2013-05-31"),
    ("march 2012", "may"): ("2012-03-01", "2012-05-31"),
    ("march", "may 2012"): ("2012-03-01", "2012-05-31"),
    ("november", "february 2013"): ("2012-11-01", "2013-02-28"),
    ("november", "february"): ("2012-11-01", "2013-02-28"),
    ("november 2011", "february"): ("2011-11-01", "2012-02-29"),
    ("2013-07-05", "2013-07-09"): ("2013-07-05", "2013-07-09"),
    ("2013-07-09", "2013-07-05"): None,
    ("2012", "2013"): ("2012-01-01", "2013-12-31"),
    ("2012", "july 2013"): ("2012-01-01", "2013-07-31"),
    ("summer 2012", "2013"): None,
    ("july", "2013"): None,
}


@each_of(("ends", "expected"), INTERVALS.items())
def test_a_missing_year_is_the_one_that_makes_the_interval_short(
    ends: tuple[str, str], expected: tuple[str, str] | None
) -> None:
    first, last = (times_at(end, 0, NEWEST) for end in ends)
    assert first is not None
    assert last is not None
    days = interval(first[0][0], last[0][0])
    assert (dates(days) if days else None) == expected
