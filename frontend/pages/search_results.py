"""`/search?q=`: leads to the page of what is looked for, or lists what it may be."""

from typing import Any

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.context import backend, coverage, search_examples
from frontend.search.finding import Finder
from frontend.search.sentences import MAX_CHARACTERS
from frontend.twins import JSON_ALONE, Twin, twins

routes = Blueprint("search", __name__)


@routes.get("/search")
def search() -> str | AnyResponse:
    """Redirect to the one page that answers all of the text, or list what it may mean."""
    results = _results()
    page, *others = results["possibilities"] or [None]
    if page and page.is_whole and not others:
        return redirect(page.address)
    return render_template("search.html", most=MAX_CHARACTERS, **results)


@twins(routes, "/search", JSON_ALONE)
def search_twin() -> Twin:
    """Return what the text may mean, without any redirect."""
    results = _results()
    for name in ("possibilities", "suggestions"):
        results[name] = [lead.as_json() for lead in results[name]]
    return Twin(results)


@twins(routes, "/search/suggestions", JSON_ALONE)
def suggestions_twin() -> Twin:
    """Return what the text may become: `search.js` shows it while somebody types."""
    typed = request.args.get("q", "").strip()
    completions = Finder(backend, coverage.now()).completions(typed) if typed else []
    return Twin({"query": typed, "suggestions": [lead.as_json() for lead in completions]})


def _results() -> dict[str, Any]:
    """Return the text that was typed, what it may be, and if that is nothing, what may help."""
    typed = request.args.get("q", "").strip()
    finder = Finder(backend, coverage.now())
    possibilities = finder.pages(typed)
    return {
        "query": typed,
        "possibilities": possibilities,
        "not_understood": finder.not_understood(typed) if not possibilities else [],
        "missing": finder.missing(typed) if not possibilities else "",
        "suggestions": finder.suggestions(typed) if typed and not possibilities else [],
        "examples": [] if possibilities else search_examples.now(),
    }
