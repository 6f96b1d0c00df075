"""Shows how late a carrier is over an interval, as a page and twins; several are compared."""

from flask import Blueprint, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.answer_page import cited_page
from frontend.backend_client import Json
from frontend.charts.time_axis import TimeAxis, in_days, shown
from frontend.context import coverage
from frontend.errors import Refused
from frontend.evidence import uncited
from frontend.form_request import filled_in
from frontend.parameters import values_of
from frontend.question import AS_OF, CARRIER, ITEM, KINDS, MOST_ITEMS, Question, require_known
from frontend.questions.delays import DAY_COLUMNS, DelaysReport, day_rows
from frontend.questions.group_queries import WEEK, Groups, answers_by_group
from frontend.twins import Twin, twins

ASKED: Groups = {"day": {"distribution": "true"}, **WEEK}

NAME = "average_delays"

routes = Blueprint(NAME, __name__)


@routes.get("/average_delays")
def page() -> AnyResponse | tuple[str, int]:
    """Return the delays of a carrier; at another address a comparison of several."""
    if len(carriers := values_of(CARRIER)) > 1:
        others = {n: text for n, text in filled_in(request.args).items() if n != CARRIER}
        compared = Question("compare", {"what": "carrier", ITEM: carriers, **others})
        return redirect(compared.address())
    return cited_page("average_delays.html", _report)


def _report(given: dict[str, str]) -> DelaysReport:
    answer, known = _answer(given), coverage.at(given.get(AS_OF))
    return DelaysReport(known, Question.of(NAME, answer, given), answer, _axis(answer))


@twins(routes, "/average_delays")
def twin() -> Twin:
    """Return the answers for each carrier, and incomplete periods; as CSV the delays by day."""
    given, carriers = filled_in(uncited(request.args)), values_of(CARRIER)
    if len(carriers) > MOST_ITEMS:
        detail = f"at most {MOST_ITEMS} carriers can be shown at once, not {len(carriers)}"
        raise Refused({"field": CARRIER, "detail": detail}, 400)
    answers: list[Json] = []
    for carrier in carriers or [""]:
        answers.append(_answer({**given, CARRIER: carrier}))
        given[AS_OF] = str(answers[0][AS_OF]["height"])
    axis = _axis(*answers)
    cut = ((axis.names[place], axis.slots[place]) for place in axis.incomplete)
    incomplete = [{"name": n, "first": str(each.first), "last": str(each.last)} for n, each in cut]
    periods = {"unit": axis.unit, "incomplete": incomplete}
    days = day_rows(answers, in_days(axis))
    return Twin({"carriers": answers, "periods": periods}, DAY_COLUMNS, days, answers[0]["as_of"])


def _answer(given: dict[str, str]) -> Json:
    """Return the answer for a carrier with all its groups. Raises Refused, BackendAway."""
    require_known(given, *KINDS[NAME].parameters)
    if not given.get(CARRIER):
        raise Refused({"field": CARRIER, "detail": "is missing"}, 400)
    by_group = answers_by_group(given, ASKED)
    groups = {f"by_{by}": answer[f"by_{by}"] for by, answer in by_group.items()}
    return {**by_group["day"], **groups, "without_hour": by_group["hour"]["without_hour"]}


def _axis(*answers: Json) -> TimeAxis:
    query = answers[0]["query"]
    days = [day["FL_DATE"] for answer in answers for day in answer["by_day"]]
    known = coverage.at(request.args.get(AS_OF))
    return shown(query["INITIAL_DATE"], query["FINAL_DATE"], known, days)
