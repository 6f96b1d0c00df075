"""`/search?q=`: leads to the page of what is looked for, or lists what it may be."""

from dataclasses import asdict
from typing import Any

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.backend_client import Backend
from frontend.coverage import CoverageKeeper
from frontend.search.examples import Examples
from frontend.search.finding import Finder
from frontend.twins import JSON_ALONE, Twin, twins


def blueprint(backend: Backend, coverage: CoverageKeeper, examples: Examples) -> Blueprint:
    """Search in the ledger behind `backend`."""
    routes = Blueprint("search", __name__)

    def found() -> dict[str, Any]:
        """The text that was typed, what it may be, and if that is nothing, what may help."""
        typed = request.args.get("q", "").strip()
        finder = Finder(backend, coverage.now())
        possibilities = finder.found(typed)
        is_found = bool(possibilities)
        return {
            "query": typed,
            "possibilities": possibilities,
            "suggestions": finder.suggestions(typed) if typed and not is_found else [],
            "examples": [] if is_found else examples.now(),
        }

    @routes.get("/search")
    def search() -> str | AnyResponse:
        """Redirect to the one page that fits, or list what the text may mean."""
        it = found()
        if len(it["possibilities"]) == 1:
            return redirect(it["possibilities"][0].address)
        return render_template("search.html", **it)

    @twins(routes, "/search", JSON_ALONE)
    def search_twin() -> Twin:
        """What the text may mean, without any redirect."""
        meanings = found()
        for name in ("possibilities", "suggestions"):
            meanings[name] = list(map(asdict, meanings[name]))
        return Twin(meanings)

    @twins(routes, "/search/suggestions", JSON_ALONE)
    def suggestions_twin() -> Twin:
        """What the text may become: `search.js` shows it while somebody types."""
        typed = request.args.get("q", "").strip()
        completions = Finder(backend, coverage.now()).completions(typed) if typed else []
        return Twin({"query": typed, "suggestions": list(map(asdict, completions))})

    return routes
