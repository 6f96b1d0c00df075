"""On which days a flight number is looked for."""

from datetime import date, timedelta

from frontend.coverage import Coverage
from frontend.questions.flight_days import (
    MOST_DAYS_ASKED,
    LegsByDay,
    around,
    nearest,
    plus,
)


class Diary:
    """Days on which there are legs, and the first and last days that were asked about."""

    def __init__(self, *flown: str) -> None:
        self.flown = flown
        self.asked: list[tuple[str, str]] = []

    def ask(self, first: str, last: str) -> LegsByDay:
        self.asked.append((first, last))
        return {day: [{"FL_DATE": day}] for day in self.flown if first <= day <= last}


YEAR = Coverage(1, "2013-01-01", "2013-12-31", (), ())
NOTHING = Coverage(0, None, None, (), ())


def test_the_nearest_days_are_found_on_both_sides_and_inside_the_coverage() -> None:
    diary = Diary("2013-01-02", "2013-01-09", "2013-01-10", "2013-01-11", "2013-01-31")
    found = nearest("2013-01-10", 3, YEAR, diary.ask)
    assert [day.date for day in found] == ["2013-01-02", "2013-01-09", "2013-01-11"]
    assert nearest("2012-01-10", 1, YEAR, diary.ask)[0].date == "2013-01-02"
    assert nearest("2016-01-10", 3, YEAR, diary.ask) == []
    assert all(YEAR.covers(first) and YEAR.covers(last) for first, last in diary.asked)
    for asked in diary.asked:
        first, last = map(date.fromisoformat, asked)
        assert last - first <= timedelta(MOST_DAYS_ASKED)
    assert nearest("2013-01-10", 1, NOTHING, diary.ask) == []


def test_the_days_around_are_asked_about_at_once() -> None:
    diary = Diary("2013-01-01", "2013-01-03", "2013-01-04")
    days = around("2013-01-02", [], 2, YEAR, diary.ask)
    assert [(day.date[-5:], bool(day.legs), day.is_covered) for day in days] == [
        *(("12-31", False, False), ("01-01", True, True), ("01-02", False, True)),
        *(("01-03", True, True), ("01-04", True, True)),
    ]
    assert diary.asked == [("2013-01-01", "2013-01-04")]


def test_days_end_with_the_calendar() -> None:
    assert plus("9999-12-31", 1) == "9999-12-31"
    assert plus("0001-01-01", -1) == "0001-01-01"
