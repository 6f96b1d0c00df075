"""Covering an interval of days with days, months and years."""

from calendar import monthrange
from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.index.periods import DAY, MONTH, YEAR, cover, periods_of

FIRST, LAST = date(1900, 1, 1), date(2199, 12, 31)

around_edges = st.sampled_from(
    [
        date(year, month, day)
        for year in (1900, 1999, 2000, 2008, 2100, 2199)
        for month in (1, 2, 3, 11, 12)
        for day in (1, 2, 28, monthrange(year, month)[1])
    ]
)
days = st.dates(FIRST, LAST) | around_edges


def days_in(span: int, period: int) -> list[date]:
    """Every day of a period, found without the code under test."""
    if span == DAY:
        return [date(1970, 1, 1) + timedelta(days=period)]
    if span == MONTH:
        year, month = period // 12, period % 12 + 1
        return [date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1)]
    assert span == YEAR
    return [
        date(period, month, day)
        for month in range(1, 13)
        for day in range(1, monthrange(period, month)[1] + 1)
    ]


def covered(initial: date, final: date) -> list[date]:
    """Every day that `cover` counts, as often as it counts it."""
    return [
        day
        for span, first, last in cover(initial, final)
        for period in range(first, last + 1)
        for day in days_in(span, period)
    ]


def interval(initial: date, final: date) -> list[date]:
    """Every day of an interval, by a plain loop."""
    dates = []
    while initial <= final:
        dates.append(initial)
        initial += timedelta(days=1)
    return dates


@given(days, st.integers(-2, 1500))
@example(FIRST, 0)
@example(LAST, 0)
@example(date(2008, 2, 29), 0)
@example(date(2008, 2, 1), 28)
@example(date(2008, 1, 1), 365)
@example(date(2007, 12, 31), 367)
def test_every_day_is_counted_exactly_once(initial: date, length: int) -> None:
    final = min(LAST, date.fromordinal(max(1, initial.toordinal() + length)))
    assert sorted(covered(initial, final)) == interval(initial, final)


@given(days, days)
@example(FIRST, LAST)
@example(date(1900, 1, 2), date(2199, 12, 30))
def test_at_most_five_ranges_and_few_rows_for_any_interval(day: date, other: date) -> None:
    ranges = cover(min(day, other), max(day, other))
    assert 1 <= len(ranges) <= 5
    rows = dict.fromkeys((DAY, MONTH, YEAR), 0)
    for span, first, last in ranges:
        assert first <= last
        rows[span] += last - first + 1
    assert rows[DAY] <= 60
    assert rows[MONTH] <= 22
    assert rows[YEAR] <= 300


EDGES = [
    ("a leap February", "2008-02-01", "2008-02-29", [(MONTH, 12 * 2008 + 1, 12 * 2008 + 1)]),
    ("no leap year 1900", "1900-02-01", "1900-02-28", [(MONTH, 12 * 1900 + 1, 12 * 1900 + 1)]),
    ("a year", "2008-01-01", "2008-12-31", [(YEAR, 2008, 2008)]),
    ("all there is", "1900-01-01", "2199-12-31", [(YEAR, 1900, 2199)]),
    ("December and January", "2008-12-01", "2009-01-31", [(MONTH, 12 * 2008 + 11, 12 * 2009)]),
    ("nothing, a month apart", "2008-03-01", "2008-01-31", []),
]


@pytest.mark.parametrize(
    ("initial", "final", "ranges"), [pytest.param(*edge, id=name) for name, *edge in EDGES]
)
def test_ranges_at_the_edges(initial: str, final: str, ranges: list[tuple[int, int, int]]) -> None:
    assert cover(date.fromisoformat(initial), date.fromisoformat(final)) == ranges


@given(days)
def test_a_day_counts_in_its_day_its_month_and_its_year(day: date) -> None:
    spans = dict(periods_of(day))
    assert spans.keys() == {DAY, MONTH, YEAR}
    for span, period in spans.items():
        assert days_in(span, period).count(day) == 1
