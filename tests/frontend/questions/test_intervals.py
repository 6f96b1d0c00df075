"""The intervals of days that are offered as links, and intervals in words."""

import pytest

from frontend.coverage import Coverage, all_days
from frontend.filters import short_interval
from frontend.questions.intervals import offered


def covering(first: str | None, last: str | None) -> Coverage:
    return Coverage(1, first, last, (), ())


def test_links_for_all_days_the_last_ones_and_each_month() -> None:
    found = offered(covering("2013-01-15", "2013-03-10"))
    assert [(each.name, each.first, each.last) for each in found] == [
        ("All days", "2013-01-15", "2013-03-10"),
        ("Last 7 days", "2013-03-04", "2013-03-10"),
        ("January 2013", "2013-01-15", "2013-01-31"),
        ("February 2013", "2013-02-01", "2013-02-28"),
        ("March 2013", "2013-03-01", "2013-03-10"),
    ]


def test_of_many_months_those_of_one_year_are_offered() -> None:
    known = covering("2008-01-01", "2013-12-31")
    for looked_at, year in ((None, "2013"), ("2010-05-06", "2010")):
        found = [each.name for each in offered(known, looked_at)]
        assert found[2:8] == ["2008", "2009", "2010", "2011", "2012", "2013"]
        assert found[8:10] == [f"January {year}", f"February {year}"]
        assert len(found) == 8 + 12


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2013-07-04", "2013-07-04", "4 July 2013"),
        ("2013-07-01", "2013-07-31", "July 2013"),
        ("2013-07-01", "2013-08-02", "1 July to 2 August 2013"),
        ("2012-07-01", "2013-07-02", "1 July 2012 to 2 July 2013"),
    ],
)
def test_an_interval_in_words_repeats_nothing(first: str, last: str, words: str) -> None:
    assert short_interval(first, last) == words


def test_an_empty_ledger_offers_nothing() -> None:
    assert offered(covering(None, None)) == []
    assert all_days(covering(None, None)) == {}
