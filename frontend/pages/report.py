"""`/report`: how punctual the flights of a flight number are."""

from dataclasses import dataclass
from functools import cached_property

from flask import Blueprint, request

from frontend import field_labels
from frontend.backend_client import Json
from frontend.context import coverage
from frontend.coverage import all_days
from frontend.evidence import Answered
from frontend.form_request import answer_page, filled_in
from frontend.question import CARRIER, DAY, DAYS, ENDS, NUMBER, Question, require_known
from frontend.questions.group_queries import flights_of_number
from frontend.questions.group_rows import Row
from frontend.questions.punctuality_report import SIGNS, PunctualityReport, punctuality_reports
from frontend.search.fields import with_number
from frontend.twins import Twin, twins

PATH = "/report"
COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status")

routes = Blueprint("report", __name__)


@dataclass(frozen=True)
class NumberReport(Answered):
    """All flights of a number over some days. answer: of `/filter_transactions`."""

    @cached_property
    def carriers(self) -> list[PunctualityReport]:
        return punctuality_reports(self.answer["flights"], self.known)

    @property
    def rows(self) -> list[Row]:
        keys = [(report, {CARRIER: report.carrier.number}) for report in self.carriers]
        return [
            Row(key, report.carrier.label, self.question.address(**key), report.figures)
            for report, key in keys
        ]


@routes.get(PATH)
def page() -> tuple[str, int]:
    """Show the form, and the report of the carrier chosen, or that uses the number most."""
    return answer_page("report.html", _report, signs=SIGNS)


def _report(given: dict[str, str]) -> NumberReport:
    answer = _flights(given)
    asked = Question.of("filter_transactions", answer, given).values
    places = {name: value for name, value in answer["query"].items() if name in ENDS}
    others = {name: value for name, value in asked.items() if name != DAY} | places
    question = Question("report", {**others, "INITIAL_DATE": asked[DAY]})
    return NumberReport(coverage.at(given.get("as_of")), question, answer)


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
    answer = flights_of_number(given)
    legs = [leg for leg in answer["flights"] if places.items() <= leg.items()]
    return {**answer, "count": len(legs), "flights": legs, "query": answer["query"] | places}
