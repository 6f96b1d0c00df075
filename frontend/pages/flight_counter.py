"""How many flights there are between two cities: the page and its twins."""

from flask import Blueprint, render_template, request

from frontend.backend_client import Json
from frontend.charts.maps import map_of_route
from frontend.context import backend, coverage
from frontend.coverage import all_days
from frontend.errors import Refused
from frontend.evidence import Citation, ProvableAnswer, uncited
from frontend.form_request import filled_in, submit
from frontend.questions.flight_counts import DESTINATION, ORIGIN, CountsReport, unknown_cities
from frontend.questions.group_queries import only_origins
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

PATH = "/flight_counter"

routes = Blueprint("flight_counter", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    known, citation = coverage.now(), Citation(request.args)
    form = submit(uncited(request.args), citation.or_newest(_counts))
    counts = form.answer
    interval = counts["query"] if counts else form.values
    provable = [ProvableAnswer("flight_counter", counts)] if counts else []
    is_one_way = counts and not (counts["count"] and counts["reverse_count"])
    text = render_template(
        "flight_counter.html",
        known=known,
        form_request=form,
        intervals=offered(known, interval.get("FINAL_DATE")),
        interval=interval,
        counts=counts,
        report=CountsReport(counts, known) if counts else None,
        map=map_of_route(known, interval[ORIGIN], interval[DESTINATION]) if counts else None,
        only_origins=only_origins(known) if is_one_way else [],
        unknown=unknown_cities(known, interval) if counts and not counts["count"] else [],
        provable=provable,
        verdict=citation.verdict(provable),
    )
    return text, form.status


@twins(routes, PATH)
def twin() -> Twin:
    """The backend's answers as one; as CSV the flights of each day."""
    counts = _counts(filled_in(uncited(request.args)))
    return Twin(counts, ("FL_DATE", "count"), counts["by_day"], counts["as_of"])


def _counts(given: dict[str, str]) -> Json:
    """Return the backend's answers by day and by carrier, up to the same block, as one answer."""
    for name in (ORIGIN, DESTINATION):
        if name not in given:
            raise Refused({"field": name, "detail": "is missing"}, 400)
    question = all_days(coverage.now()) | given
    counts = backend.get(PATH, question | {"group_by": "day"})
    question["as_of"] = str(counts["as_of"]["height"])
    counts["by_carrier"] = backend.get(PATH, question | {"group_by": "carrier"})["by_carrier"]
    back = {ORIGIN: given[DESTINATION], DESTINATION: given[ORIGIN]}
    question.pop("group_by", None)
    return counts | {"reverse_count": backend.get(PATH, question | back)["count"]}
