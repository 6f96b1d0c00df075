"""Shows what happened to flight N on day D."""

from flask import Blueprint, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from frontend import field_labels
from frontend.answer_page import cited_page
from frontend.context import coverage
from frontend.evidence import uncited
from frontend.form_request import filled_in
from frontend.question import DAY, DAYS, KINDS, NUMBER, Question, require_known
from frontend.questions import flights_of_day
from frontend.questions.status_answers import PATH, DayStatus, as_json, rows, status_of_day
from frontend.search.fields import with_number
from frontend.twins import Twin, twins

NAME = "filter_transactions"
MOST_LEGS_SHOWN = 100
COLUMNS = ("carrier", "leg", *field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status", "outcome")

routes = Blueprint("flight_status", __name__)
for template_filter in (
    flights_of_day.outcome,
    flights_of_day.outcome_of_all,
    flights_of_day.worst,
    flights_of_day.departure_day,
    flights_of_day.arrival_day,
    flights_of_day.scheduled_day,
    flights_of_day.day_in_words,
    flights_of_day.scheduled,
):
    routes.add_app_template_filter(template_filter)


@routes.get(PATH)
def page() -> AnyResponse | tuple[str, int]:
    """Return the flights of a day; without a day, the report of the number."""
    given = filled_in(request.args)
    if NUMBER in given and not {DAY, DAYS[1]} & given.keys():
        return redirect(Question("report", uncited(given)).address())
    return cited_page("flight_status.html", _status, most=MOST_LEGS_SHOWN)


@twins(routes, PATH)
def twin() -> Twin:
    """Return the legs in order, and the days around."""
    status = _status(filled_in(uncited(request.args)))
    return Twin(as_json(status), COLUMNS, rows(status.carriers), status.answer["as_of"])


def _status(given: dict[str, str]) -> DayStatus:
    require_known(given, *KINDS[NAME].parameters)
    return status_of_day(with_number(given, coverage.now()))
