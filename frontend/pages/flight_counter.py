"""Shows how many flights there are between two cities: the page and its twins."""

from flask import Blueprint, request

from frontend.answer_page import cited_page
from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import all_days
from frontend.evidence import uncited
from frontend.form_request import filled_in
from frontend.question import AS_OF, ENDS, KINDS, Question, ends_in, require_known
from frontend.questions.flight_counts import CountsReport
from frontend.twins import Twin, twins

NAME = "flight_counter"
PATH = f"/{NAME}"

routes = Blueprint("flight_counter", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    return cited_page("flight_counter.html", _report)


@twins(routes, PATH)
def twin() -> Twin:
    """Return the backend's answers as one; as CSV the flights of each day."""
    counts = _counts(filled_in(uncited(request.args)))
    return Twin(counts, ("FL_DATE", "count"), counts["by_day"], counts["as_of"])


def _report(given: dict[str, str]) -> CountsReport:
    counts, known = _counts(given), coverage.at(given.get(AS_OF))
    return CountsReport(known, Question.of(NAME, counts, given), counts)


def _counts(given: dict[str, str]) -> Json:
    """Return the backend's answers by day and by carrier, up to the same block, as one answer."""
    require_known(given, *KINDS[NAME].parameters)
    ends_in(given)
    question = all_days(coverage.at(given.get(AS_OF))) | given
    counts = backend.get(PATH, question | {"group_by": "day"})
    question[AS_OF] = str(counts[AS_OF]["height"])
    counts["by_carrier"] = backend.get(PATH, question | {"group_by": "carrier"})["by_carrier"]
    back = {ENDS.get(name, name): text for name, text in question.items()}
    return counts | {"reverse_count": backend.get(PATH, back)["count"]}
