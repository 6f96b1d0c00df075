"""How many flights there are between two cities: the page and its twins."""

from flask import Blueprint, render_template, request

from frontend.backend_client import Json
from frontend.charts.maps import distance_between
from frontend.context import backend, coverage
from frontend.coverage import all_days
from frontend.evidence import Citation, Evidence, uncited
from frontend.form_request import filled_in, submit
from frontend.question import AS_OF, BOTH, ENDS, KINDS, Question, ends_in, require_known
from frontend.questions.flight_counts import CountsReport
from frontend.questions.group_queries import only_origins
from frontend.twins import Twin, twins

NAME = "flight_counter"
PATH = f"/{NAME}"

routes = Blueprint("flight_counter", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    known, citation = coverage.at(request.args.get(AS_OF)), Citation(request.args)
    form = submit(uncited(request.args), citation.or_newest(_counts))
    counts, given = form.answer, citation.found(form.values)
    question = Question.of(NAME, counts, given) if counts else Question(NAME, {})
    evidence = [Evidence(question, counts)] if counts else []
    is_one_way = counts is not None and not (counts["count"] and counts["reverse_count"])
    text = render_template(
        "flight_counter.html",
        known=known,
        form_request=form,
        question=question,
        ends=[question.end(end, known) for end in BOTH],
        cities=[question.city(end, known) for end in BOTH],
        counts=counts,
        report=CountsReport(counts, known) if counts else None,
        distance=distance_between(*(question.airports(end, known) for end in BOTH))
        if counts
        else None,
        only_origins=only_origins(known) if is_one_way else [],
        unknown=question.offers(counts.get("warnings", ())) if counts else [],
        evidence=evidence,
        verdict=citation.verdict(evidence),
    )
    return text, form.status


@twins(routes, PATH)
def twin() -> Twin:
    """The backend's answers as one; as CSV the flights of each day."""
    counts = _counts(filled_in(uncited(request.args)))
    return Twin(counts, ("FL_DATE", "count"), counts["by_day"], counts["as_of"])


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
