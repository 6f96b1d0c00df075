"""`/compare`: which of several carriers, airports, routes, flights or months is better."""

from flask import Blueprint, request

from frontend.answer_page import cited_page
from frontend.evidence import uncited
from frontend.form_request import filled_in
from frontend.parameters import values_of
from frontend.question import ITEM, MOST_ITEMS
from frontend.questions.comparison import SUBJECTS, Comparison, comparison
from frontend.questions.figures import FIGURES
from frontend.twins import Twin, twins

PATH = "/compare"

routes = Blueprint("compare", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    return cited_page(
        "compare.html",
        _comparison,
        items=values_of(ITEM),
        most_items=MOST_ITEMS,
        subjects=SUBJECTS,
        kinds=[(name, subject.label) for name, subject in SUBJECTS.items()],
    )


def _comparison(given: dict[str, str]) -> Comparison:
    return comparison(given, values_of(ITEM))


@twins(routes, PATH)
def twin() -> Twin:
    """Return what is compared, and the difference between the best and the worst."""
    compared = _comparison(filled_in(uncited(request.args)))
    rows = [row.as_json() for row in compared.rows]
    verdict, as_of = compared.verdict, compared.evidence[0].answer["as_of"]
    answer = {
        "query": dict(compared.question.values),
        "as_of": as_of,
        "compared": rows,
        "verdict": verdict and {"text": verdict.better, "interval": verdict.interval},
    }
    return Twin(answer, (ITEM, "name", *FIGURES), rows, as_of)
