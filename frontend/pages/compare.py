"""`/compare`: which of several carriers, airports, routes, flights or months is better."""

from flask import Blueprint, render_template, request

from frontend.context import coverage
from frontend.form_request import FormRequest, filled_in, submit
from frontend.question import ITEM
from frontend.questions.comparison import MOST_ITEMS, SUBJECTS, Comparison, comparison
from frontend.questions.figures import FIGURES
from frontend.twins import Twin, twins

PATH = "/compare"

routes = Blueprint("compare", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    known = coverage.at(request.args.get("as_of"))
    form: FormRequest[Comparison] = FormRequest()
    if known.first_date:
        form = submit(request.args, lambda given: comparison(given, _items()))
    text = render_template(
        "compare.html",
        known=known,
        form_request=form,
        items=_items(),
        most_items=MOST_ITEMS,
        subjects=SUBJECTS,
        kinds=[(name, subject.label) for name, subject in SUBJECTS.items()],
        comparison=form.answer,
    )
    return text, form.status


@twins(routes, PATH)
def twin() -> Twin:
    """What is compared, and the difference between the best and the worst."""
    found = comparison(filled_in(request.args), _items())
    rows = [row.as_json() for row in found.rows]
    verdict = found.verdict
    answer = {
        "query": dict(found.question.values),
        "as_of": found.as_of,
        "compared": rows,
        "verdict": verdict and {"text": verdict.better, "interval": verdict.interval},
    }
    return Twin(answer, (ITEM, "name", *FIGURES), rows, found.as_of)


def _items() -> list[str]:
    """Return what this request names to compare, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, request.args.getlist(ITEM)))))
