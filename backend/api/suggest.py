"""`GET /suggest` and `/coverage`."""

from flask import Blueprint, Response, request

from backend.api.answers import answer, encode, versioned
from backend.api.conditions import REVALIDATE, tag_of, unchanged
from backend.api.reading import only, parameters, query_string, whole_number
from backend.errors import InvalidQuery
from backend.ledger import Ledger

MAX_SUGGESTIONS = 50
DEFAULT_SUGGESTIONS = "10"


def blueprint(ledger: Ledger) -> Blueprint:
    """Completions from `ledger`."""
    routes = Blueprint("suggest", __name__)

    @routes.get("/suggest")
    def suggest() -> Response:
        """Cities, airports, carriers or flight numbers that begin with or hold `q`."""
        given = parameters(query_string(request))
        only(given, "field", "q", "limit")
        if "field" not in given:
            raise InvalidQuery("field", None, "is missing; for example field=city")
        limit = whole_number("limit", given.get("limit", DEFAULT_SUGGESTIONS), 1, MAX_SUGGESTIONS)
        return answer(ledger.suggest(given["field"], given.get("q", ""), limit))

    @routes.get("/coverage")
    def coverage() -> Response:
        """What the ledger covers: days, carriers, airports."""
        only(parameters(query_string(request)))
        environ = request.environ
        tag = tag_of(ledger.recent_state().tip_hash, "coverage", "")
        if known := unchanged(environ, tag, REVALIDATE):
            return known
        found = ledger.coverage()
        tag = tag_of(found["as_of"]["tip_hash"], "coverage", "")
        return versioned(environ, encode(found), tag, REVALIDATE)

    return routes
