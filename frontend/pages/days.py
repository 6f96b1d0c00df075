"""`/days`: a calendar, and the worst days; `/days/YYYY-MM-DD`: a day beside a usual one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from flask import Blueprint, abort, render_template, request

from frontend.backend_client import Json
from frontend.charts.months import Month, months
from frontend.context import coverage
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.filters import counted, ordinal, weekday
from frontend.form_request import answer_page, filled_in
from frontend.question import AS_OF, CARRIER, DAY, DAYS, ENDS, Question, require_known
from frontend.questions.figures import COUNTS, FEW_ARRIVALS, together
from frontend.questions.group_queries import Groups, answers_by_group
from frontend.questions.group_rows import (
    GROUP_COLUMNS,
    NOUNS,
    PUNCTUALITY,
    SORTS,
    Grouped,
    Row,
    csv_rows,
    in_order,
    may_be_ranked,
    rows_of,
    worst_first,
)
from frontend.twins import Twin, twins

FIRST_YEAR, LAST_YEAR = 1900, 2199  # the ledger takes no other years
MOST_SHOWN = 15  # of days, airports
SORT = "sort"
SUBJECT = (*ENDS, CARRIER)
"""What may narrow down the flights of days."""
OVER_DAYS: Groups = {"day": {}, "month": {}}
ON_A_DAY: Groups = {"carrier": {}, "hour": {}, "origin": {}, "destination": {}}

routes = Blueprint("days", __name__)


@dataclass(frozen=True)
class DaysReport(Grouped):
    """The days of an interval. sort: a name of SORTS by which the worst are found."""

    sort: str

    @cached_property
    def days(self) -> list[Row]:
        return self._rows("day")

    @cached_property
    def months(self) -> list[Row]:
        return self._rows("month")

    def _rows(self, by: str) -> list[Row]:
        values = {name: value for name, value in self.question.values.items() if name != SORT}
        return rows_of(self.answers[by], by, self.known, Question("days", values))

    def ranked(self, rows: Sequence[Row]) -> list[Row]:
        """Return the groups that may be ranked, the worst first."""
        return worst_first([row for row in rows if may_be_ranked(row, self.sort)], self.sort)

    def few(self, rows: Sequence[Row]) -> list[Row]:
        """Return the other groups, the most flights first."""
        few = [row for row in rows if not may_be_ranked(row, self.sort)]
        return in_order(few, "flights", is_descending=True)

    def worst(self, rows: Sequence[Row]) -> list[Row]:
        """Return those of some groups that are equally the worst."""
        value, ordered = SORTS[self.sort].value, self.ranked(rows)
        return [row for row in ordered if value(row) == value(ordered[0])]

    def calendar(self) -> Iterator[Month[Row]]:
        return months({row.key[DAY]: row for row in self.days})


@dataclass(frozen=True)
class DayReport(Grouped):
    """A day. answers: by each of ON_A_DAY. year: the days of its year, without this one."""

    year: Sequence[Row]

    @cached_property
    def same_weekday(self) -> list[Row]:
        """The other days of the year with this weekday."""
        name = weekday(self.question.values[DAY])
        return [row for row in self.year if weekday(row.key[DAY]) == name]

    @cached_property
    def usual(self) -> Json | None:
        """The figures of a usual day with this weekday; None if there is no other."""
        return mean_of([row.figures for row in self.same_weekday])

    @property
    def place(self) -> str:
        """Which of the days of the year it is by the share on time, as a sentence; "" if alone.

        Days with few flights have no place.
        """
        if not may_be_ranked(Row({}, "", "", self.total), PUNCTUALITY):
            return ""
        share = self.total[PUNCTUALITY] or 0.0
        ranked = [row for row in self.year if may_be_ranked(row, PUNCTUALITY)]
        others = [row.figures[PUNCTUALITY] or 0.0 for row in ranked]
        worse, equal = sum(other < share for other in others), others.count(share)
        better = len(others) - worse - equal
        days = f"{counted(len(others) + 1, 'day')} of {self.question.values[DAY][:4]}"
        if len(ranked) < len(self.year):
            days += f" with {FEW_ARRIVALS} flights or more"
        if equal == len(others):
            return f"Each of {days} has this share." if others else ""
        extreme, ahead = ("best", better) if better < worse else ("worst", worse)
        if not ahead:
            place = f"one of the {equal + 1} {extreme}" if equal else f"the {extreme}"
        else:
            place = f"the {ordinal(ahead + 1)} {extreme}"
            place += f", like {counted(equal, 'other day')}," if equal else ""
        return f"This is {place} of {days} by this share."


def mean_of(figures: Sequence[Json]) -> Json | None:
    """Return the means of the counts of several days, and the shares of all of them together."""
    if not figures:
        return None
    total = together(figures)
    return {**total, **{name: total[name] / len(figures) for name in COUNTS}}


def days_report(given: Mapping[str, str]) -> DaysReport:
    """Return the days that a request asks for, by default the last year. Raises Refused."""
    require_known(given, *SUBJECT, *DAYS, SORT)
    known, sort = coverage.at(given.get(AS_OF)), given.get(SORT, PUNCTUALITY)
    if sort not in SORTS:
        raise Refused.choice(SORT, sort, NOUNS)
    asked = _year(known.last_date, known) | {n: t for n, t in given.items() if n != SORT}
    answers = answers_by_group(asked, OVER_DAYS)
    chosen = {SORT: sort} if sort != PUNCTUALITY else {}
    question = Question.of("days", answers["day"], given, *SUBJECT, *DAYS)
    return DaysReport(known, Question("days", {**chosen, **question.values}), answers, sort)


def day_report(day: str) -> DayReport:
    """Return the day that an address names beside the others of its year. Raises Refused.

    Aborts with 404 if it names none.
    """
    given = filled_in(request.args)
    if not _is_day(day):
        years = f"from {FIRST_YEAR} to {LAST_YEAR}"
        abort(404, f"“{day}” is not a day {years}; write it as in /days/2013-01-05")
    require_known(given, *SUBJECT)
    known = coverage.at(given.get(AS_OF))
    answers = answers_by_group({**given, **dict.fromkeys(DAYS, day)}, ON_A_DAY)
    question = Question.of("days", answers["carrier"], given, *SUBJECT)
    question = Question("days", {DAY: day, **question.values})
    as_of = {AS_OF: str(answers["carrier"]["as_of"]["height"])}
    days = _year(day, known) or dict.fromkeys(DAYS, day)
    year = answers_by_group({**given, **days, **as_of}, {"day": {}})
    others = [row for row in rows_of(year["day"], "day", known, question) if row.key[DAY] != day]
    return DayReport(known, question, answers, others)


def _is_day(text: str) -> bool:
    try:
        when = date.fromisoformat(text)
    except ValueError:
        return False
    return when.isoformat() == text and FIRST_YEAR <= when.year <= LAST_YEAR


def _year(day: str | None, known: Coverage) -> dict[str, str]:
    """Return the days of a day's year that the ledger covers; {} for an empty ledger."""
    if not day or not known.first_date or not known.last_date:
        return {}
    ends = max(f"{day[:4]}-01-01", known.first_date), min(f"{day[:4]}-12-31", known.last_date)
    return dict(zip(DAYS, ends if ends[0] <= ends[1] else (day, day), strict=True))


@routes.get("/days")
def calendar() -> tuple[str, int]:
    return answer_page(
        "days.html",
        days_report,
        may_be_empty=True,
        sorts=SORTS,
        sort_names=list(NOUNS.items()),
        most=MOST_SHOWN,
    )


@twins(routes, "/days")
def calendar_twin() -> Twin:
    report = days_report(filled_in(request.args))
    rows = csv_rows({"day": report.days, "month": report.months})
    return Twin(
        report.answers, (DAY, "month", *GROUP_COLUMNS), rows, report.answers["day"]["as_of"]
    )


@routes.get("/days/<day>")
def page(day: str) -> str:
    report = day_report(day)
    return render_template("day.html", report=report, known=report.known, most=MOST_SHOWN)


@twins(routes, "/days/<day>")
def twin(day: str) -> Twin:
    report = day_report(day)
    carriers = [
        {CARRIER: row.key[CARRIER], "carrier": row.name, **row.figures}
        for row in report.rows["carrier"]
    ]
    as_of = report.total["as_of"]
    answer = {DAY: day, "carriers": carriers, "usual": report.usual, "as_of": as_of}
    return Twin({**answer, **report.answers}, GROUP_COLUMNS, csv_rows(report.rows), as_of)
