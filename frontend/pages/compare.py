"""`/compare`: which of several carriers, airports, routes, flights or months is better."""

from flask import Blueprint, render_template, request

from frontend.context import coverage
from frontend.evidence import Citation, uncited
from frontend.form_request import FormRequest, filled_in, submit
from frontend.question import ITEM
from frontend.questions.comparison import MOST_ITEMS, SUBJECTS, Comparison, comparison
from frontend.questions.figures import FIGURES
from frontend.twins import Twin, twins

PATH = "/compare"

routes = Blueprint("compare", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    known, citation = coverage.at(request.args.get("as_of")), Citation(request.args)
    form: FormRequest[Comparison] = FormRequest()
    if known.first_date:
        ask = citation.or_newest(lambda given: comparison(given, _items()))
        form = submit(uncited(request.args), ask)
    text = render_template(
        "compare.html",
        known=known,
        form_request=form,
        items=_items(),
        most_items=MOST_ITEMS,
        subjects=SUBJECTS,
        kinds=[(name, subject.label) for name, subject in SUBJECTS.items()],
        comparison=form.answer,
        cited=citation.verdict(form.answer.evidence if form.answer else []),
    )
    return text, form.status


@twins(routes, PATH)
def twin() -> Twin:
    """What is compared, and the difference between the best and the worst."""
    found = comparison(filled_in(uncited(request.args)), _items())
    rows = [row.as_json() for row in found.rows]
    verdict, as_of = found.verdict, found.evidence[0].answer["as_of"]
    answer = {
        "query": dict(found.question.values),
        "as_of": as_of,
        "compared": rows,
        "verdict": verdict and {"text": verdict.better, "interval": verdict.interval},
    }
    return Twin(answer, (ITEM, "name", *FIGURES), rows, as_of)


def _items() -> list[str]:
    """Return what this request names to compare, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, request.args.getlist(ITEM)))))
