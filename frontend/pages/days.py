"""`/days`: a calendar, and the worst days; `/days/YYYY-MM-DD`: a day beside a usual one."""

from datetime import date

from flask import Blueprint, abort, render_template, request

from frontend.answer_page import answer_page
from frontend.form_request import filled_in
from frontend.question import CARRIER, DAY
from frontend.questions.days import day_report, days_report
from frontend.questions.figures import FIGURES
from frontend.questions.group_rows import NOUNS, SORTS, csv_rows
from frontend.twins import Twin, twins

FIRST_YEAR, LAST_YEAR = 1900, 2199  # the ledger takes no other years
MOST_SHOWN = 15  # of days, airports
COLUMNS = ("group_by", "name", *FIGURES)

routes = Blueprint("days", __name__)


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
    return Twin(report.answers, (DAY, "month", *COLUMNS), rows, report.answers["day"]["as_of"])


@routes.get("/days/<day>")
def page(day: str) -> str:
    _day(day)
    report = day_report(day, filled_in(request.args))
    return render_template("day.html", report=report, known=report.known, most=MOST_SHOWN)


@twins(routes, "/days/<day>")
def twin(day: str) -> Twin:
    _day(day)
    report = day_report(day, filled_in(request.args))
    carriers = [
        {CARRIER: row.key[CARRIER], "carrier": row.name, **row.figures}
        for row in report.rows["carrier"]
    ]
    as_of = report.total["as_of"]
    answer = {DAY: day, "carriers": carriers, "usual": report.usual, "as_of": as_of}
    return Twin({**answer, **report.answers}, COLUMNS, csv_rows(report.rows), as_of)


def _day(text: str) -> date:
    """Return the day that an address names. Aborts with 404 if it names none."""
    try:
        when = date.fromisoformat(text)
    except ValueError:
        when = date.min
    if when.isoformat() != text or not FIRST_YEAR <= when.year <= LAST_YEAR:
        abort(404, f"“{text}” is not a day; write it as in /days/2013-01-05")
    return when
