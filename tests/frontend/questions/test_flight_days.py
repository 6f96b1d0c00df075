"""On which days a flight number is looked for."""

from datetime import date, timedelta

from frontend.coverage import Coverage
from frontend.questions.flight_days import MOST_DAYS_ASKED, last_before, nearest, plus
from frontend.questions.flights_of_day import Leg


class Diary:
    """Days on which there are legs, and what was asked about."""

    def __init__(self, *flown: str) -> None:
        self.flown = flown
        self.asked: list[str] = []

    def ask(self, day: str) -> list[Leg]:
        self.asked.append(day)
        return [{"FL_DATE": day}] if day in self.flown else []


YEAR = Coverage(1, "2013-01-01", "2013-12-31", (), ())
NOTHING = Coverage(0, None, None, (), ())


def test_looking_back_ends_within_a_bound_and_says_where_to_go_on() -> None:
    diary = Diary("2013-01-05", "2013-12-20")
    found = last_before("2014-06-01", 10, YEAR, diary.ask)
    assert [day.date for day in found.flown] == ["2013-12-20"]
    assert found.last == "2013-12-31"
    assert len(diary.asked) == MOST_DAYS_ASKED
    assert found.earlier == found.first == plus("2013-12-31", 1 - MOST_DAYS_ASKED)
    dates, steps = [], 0
    while found.earlier:
        found = last_before(found.earlier, 10, YEAR, diary.ask)
        dates += [day.date for day in found.flown]
        steps += 1
    assert dates == ["2013-01-05"]
    assert steps == 365 // MOST_DAYS_ASKED
    every = [(date(2013, 12, 31) - timedelta(back)).isoformat() for back in range(365)]
    assert diary.asked == every


def test_looking_back_stops_when_there_are_enough() -> None:
    diary = Diary("2013-12-31", "2013-12-30", "2013-12-28")
    found = last_before("2014-01-01", 2, YEAR, diary.ask)
    assert [day.date for day in found.flown] == ["2013-12-31", "2013-12-30"]
    assert found.earlier == "2013-12-30"
    assert len(diary.asked) == 2


def test_there_is_nothing_before_the_first_day() -> None:
    diary = Diary()
    for before, known in (("2013-01-01", YEAR), ("0001-01-01", YEAR), ("2013-05-05", NOTHING)):
        found = last_before(before, 2, known, diary.ask)
        assert (found.flown, found.first, found.last, found.earlier) == ([], "", "", "")
    assert diary.asked == []


def test_the_nearest_days_are_found_on_both_sides_and_inside_the_coverage() -> None:
    diary = Diary("2013-01-02", "2013-01-09", "2013-01-11", "2013-01-31")
    found = nearest("2013-01-10", 3, YEAR, diary.ask)
    assert [day.date for day in found] == ["2013-01-02", "2013-01-09", "2013-01-11"]
    assert "2013-01-10" not in diary.asked
    assert nearest("2012-01-10", 1, YEAR, diary.ask)[0].date == "2013-01-02"
    assert nearest("2013-01-10", 1, NOTHING, diary.ask) == []
    diary = Diary()
    assert nearest("2016-01-10", 3, YEAR, diary.ask) == []
    assert all(YEAR.covers(day) for day in diary.asked)
    assert len(diary.asked) == len(set(diary.asked)) <= MOST_DAYS_ASKED


def test_days_end_with_the_calendar() -> None:
    assert plus("9999-12-31", 1) == "9999-12-31"
    assert plus("0001-01-01", -1) == "0001-01-01"
