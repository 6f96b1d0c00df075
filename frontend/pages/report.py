"""`/report`: how punctual the flights of a flight number are."""

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import all_days
from frontend.form_request import Values, filled_in, submit
from frontend.question import CARRIER, DAY, DAYS, ENDS, NUMBER, Question, require_known
from frontend.questions.group_rows import Row
from frontend.questions.punctuality_report import SIGNS, PunctualityReport, punctuality_reports
from frontend.questions.status_answers import numbers_like
from frontend.search.fields import with_number
from frontend.twins import Twin, twins

PATH = "/report"
COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status")

routes = Blueprint("report", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    """The form, and the report of the carrier that uses the number most, or of the one chosen."""
    known = coverage.at(request.args.get("as_of"))
    form = submit(request.args, _flights)
    query = form.answer["query"] if form.answer else {}
    question = _question(form.answer, form.values) if form.answer else None
    reports = punctuality_reports(form.answer["flights"], known) if form.answer else []
    text = render_template(
        "report.html",
        known=known,
        form_request=form,
        query=query,
        question=question,
        reports=reports,
        rows=[_row(report, question) for report in reports if question],
        signs=SIGNS,
        numbers=numbers_like(query[NUMBER]) if form.answer and not reports else [],
        as_of=form.answer["as_of"]["height"] if form.answer else None,
    )
    return text, form.status


def _row(report: PunctualityReport, question: Question) -> Row:
    key = {CARRIER: report.carrier.number}
    return Row(key, report.carrier.label, question.address(**key), report.figures)


def _question(answer: Json, given: Values) -> Question:
    asked = Question.of("filter_transactions", answer, given).values
    places = {name: value for name, value in answer["query"].items() if name in ENDS}
    others = {name: value for name, value in asked.items() if name != DAY} | places
    return Question("report", {**others, "INITIAL_DATE": asked[DAY]})


@twins(routes, PATH)
def twin() -> Twin:
    answer = _flights(filled_in(request.args))
    return Twin(answer, COLUMNS, answer["flights"], answer["as_of"])


def _flights(given: dict[str, str]) -> Json:
    """Return all flights of the number in the interval. Raises Refused, BackendAway."""
    require_known(given, NUMBER, CARRIER, *ENDS, *DAYS)
    known = coverage.at(given.get("as_of"))
    given = all_days(known) | with_number(given, known)
    places = {name: given.pop(name) for name in ENDS if name in given}
    first = given.pop("INITIAL_DATE", "")
    answer = backend.get("/filter_transactions", {**given, DAY: first} if first else given)
    legs = [leg for leg in answer["flights"] if places.items() <= leg.items()]
    return {**answer, "flights": legs, "query": answer["query"] | places}
