"""What happened to flight N on day D; without a day, the last days on which it flew."""

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.context import coverage
from frontend.errors import Refused
from frontend.evidence import Citation, ProvableAnswer, uncited
from frontend.flight_numbers import understood
from frontend.form_request import submit
from frontend.questions import flights_of_day
from frontend.questions.status_answers import (
    DAY,
    PATH,
    DayStatus,
    NumberStatus,
    as_json,
    offers,
    rows,
    status_of_day,
    status_of_number,
)
from frontend.twins import Twin, twins

MOST_LEGS_SHOWN = 100
COLUMNS = ("carrier", "leg", *field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status", "outcome")

routes = Blueprint("flight_status", __name__)
for template_filter in (
    flights_of_day.outcome,
    flights_of_day.outcome_of_all,
    flights_of_day.worst,
    flights_of_day.departure_day,
    flights_of_day.arrival_day,
    flights_of_day.day_in_words,
):
    routes.add_app_template_filter(template_filter)


@routes.get(PATH)
def page() -> tuple[str, int]:
    citation = Citation(request.args)
    form = submit(uncited(request.args), citation.or_newest(_status))
    status = form.answer
    if isinstance(status, NumberStatus):
        return render_template("flight_days.html", form_request=form, answer=status), form.status
    provable = [ProvableAnswer("filter_transactions", status.answer)] if status else []
    text = render_template(
        "flight_status.html",
        form_request=form,
        answer=status,
        offers=offers(status) if status and not status.count else None,
        most=MOST_LEGS_SHOWN,
        provable=provable,
        verdict=citation.verdict(provable),
    )
    return text, form.status


@twins(routes, PATH)
def twin() -> Twin:
    """The legs in order, and the days around; without a day, the last days with flights."""
    form = submit(uncited(request.args), _status)
    if form.answer is None:
        raise form.refused or Refused({"detail": "there is no question"}, 400)
    as_of = form.answer.answer["as_of"] if isinstance(form.answer, DayStatus) else None
    return Twin(as_json(form.answer), COLUMNS, rows(form.answer.carriers), as_of)


def _status(given: dict[str, str]) -> DayStatus | NumberStatus:
    given = understood(given, coverage.now())
    return status_of_day(given) if DAY in given else status_of_number(given)
