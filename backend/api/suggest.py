"""`GET /suggest`."""

from flask import Blueprint, Response, request

from backend.api.answers import answer
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

    return routes
