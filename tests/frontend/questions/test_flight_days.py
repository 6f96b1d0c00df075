"""On which days a flight number is looked for."""

from datetime import date, timedelta

from frontend.coverage import Coverage
from frontend.questions.flight_days import (
    MOST_DAYS_ASKED,
    LegsByDay,
    around,
    last_before,
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


def days_in(first: str, last: str) -> int:
    return (date.fromisoformat(last) - date.fromisoformat(first)) // timedelta(1) + 1


def test_looking_back_ends_within_a_bound_and_says_where_to_go_on() -> None:
    diary = Diary("2013-01-05", "2013-12-20")
    found = last_before("2014-06-01", 10, YEAR, diary.ask)
    assert [day.date for day in found.flown] == ["2013-12-20"]
    assert found.last == "2013-12-31"
    assert found.earlier == found.first == plus("2013-12-31", 1 - MOST_DAYS_ASKED)
    dates = []
    while found.earlier:
        found = last_before(found.earlier, 10, YEAR, diary.ask)
        dates += [day.date for day in found.flown]
    assert dates == ["2013-01-05"]
    assert [days_in(*asked) for asked in diary.asked[:-1]] == [MOST_DAYS_ASKED] * 5
    newer = ["2014-01-01", *(first for first, _ in diary.asked)]
    assert [last for _, last in diary.asked] == [plus(day, -1) for day in newer[:-1]]
    assert newer[-1] == "2013-01-01"


def test_looking_back_stops_when_there_are_enough() -> None:
    diary = Diary("2013-12-31", "2013-12-30", "2013-12-28")
    found = last_before("2014-01-01", 2, YEAR, diary.ask)
    assert [day.date for day in found.flown] == ["2013-12-31", "2013-12-30"]
    assert found.earlier == "2013-12-30"


def test_there_is_nothing_before_the_first_day() -> None:
    diary = Diary()
    for before, known in (("2013-01-01", YEAR), ("0001-01-01", YEAR), ("2013-05-05", NOTHING)):
        found = last_before(before, 2, known, diary.ask)
        assert (found.flown, found.first, found.last, found.earlier) == ([], "", "", "")
    assert diary.asked == []


def test_the_nearest_days_are_found_on_both_sides_and_inside_the_coverage() -> None:
    diary = Diary("2013-01-02", "2013-01-09", "2013-01-10", "2013-01-11", "2013-01-31")
    found = nearest("2013-01-10", 3, YEAR, diary.ask)
    assert [day.date for day in found] == ["2013-01-02", "2013-01-09", "2013-01-11"]
    assert nearest("2012-01-10", 1, YEAR, diary.ask)[0].date == "2013-01-02"
    assert nearest("2016-01-10", 3, YEAR, diary.ask) == []
    assert all(YEAR.covers(first) and YEAR.covers(last) for first, last in diary.asked)
    assert all(days_in(*asked) <= MOST_DAYS_ASKED + 1 for asked in diary.asked)
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
