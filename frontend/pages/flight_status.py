"""What happened to flight N on day D; without a day, the last days on which it flew."""

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.context import coverage
from frontend.errors import Refused
from frontend.evidence import Citation, Evidence, uncited
from frontend.form_request import submit
from frontend.question import AS_OF, DAY, KINDS, Question, as_of_in, require_known
from frontend.questions import flights_of_day
from frontend.questions.status_answers import (
    PATH,
    DayStatus,
    NumberStatus,
    as_json,
    offers,
    rows,
    status_of_day,
    status_of_number,
)
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
def page() -> tuple[str, int]:
    citation = Citation(request.args)
    form = submit(uncited(request.args), citation.or_newest(_status))
    status = form.answer
    given, known = citation.found(form.values), coverage.at(request.args.get(AS_OF))
    shown = {"form_request": form, "answer": status, "known": known}
    if isinstance(status, NumberStatus):
        question = Question(NAME, {**status.query, **as_of_in(given)})
        return render_template("flight_days.html", **shown, question=question), form.status
    question = Question.of(NAME, status.answer, given) if status else Question(NAME, {})
    evidence = [Evidence(question, status.answer)] if status else []
    text = render_template(
        "flight_status.html",
        **shown,
        question=question,
        offers=offers(status, known, {name: str(value) for name, value in question.values.items()})
        if status and not status.count
        else None,
        unknown=question.offers(status.answer.get("warnings", ())) if status else [],
        most=MOST_LEGS_SHOWN,
        evidence=evidence,
        verdict=citation.verdict(evidence),
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
    require_known(given, *KINDS[NAME].parameters, "before")
    given = with_number(given, coverage.now())
    return status_of_day(given) if {DAY, "FINAL_DATE"} & given.keys() else status_of_number(given)
