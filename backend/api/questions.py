"""`GET /filter_transactions`, `/average_delays` and `/flight_counter`."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, request

from backend.api.answers import MIMETYPE, AnswerCache, encode
from backend.api.reading import parameters, query_string
from backend.ledger import Ledger
from backend.questions import (
    OPTION_NAMES,
    Asked,
    AverageDelays,
    FilterTransactions,
    FlightCounter,
    Options,
    asked,
)


def blueprint(ledger: Ledger, kept: AnswerCache) -> Blueprint:
    """The three questions to `ledger`, whose answers go into `kept`."""
    routes = Blueprint("questions", __name__)

    def answered(kind: type[Asked], ask: Callable[[Asked, Options], dict[str, Any]]) -> Response:
        query = query_string(request)
        if any(name in query for name in OPTION_NAMES):
            return Response(encode(ask(*asked(kind, parameters(query)))), mimetype=MIMETYPE)
        tip_hash = ledger.recent_tip_hash()
        body = kept.find(tip_hash, (kind, query))
        if body is None:
            found = ask(*asked(kind, parameters(query)))
            body = encode(found)
            kept.keep(found["as_of"]["tip_hash"], (kind, query), body)
        return Response(body, mimetype=MIMETYPE)

    @routes.get("/filter_transactions")
    def filter_transactions() -> Response:
        """What happened to flight N on day D?"""
        return answered(FilterTransactions, ledger.filter_transactions)

    @routes.get("/average_delays")
    def average_delays() -> Response:
        """How late was carrier C on average between two dates?"""
        return answered(AverageDelays, ledger.average_delays)

    @routes.get("/flight_counter")
    def flight_counter() -> Response:
        """How many flights went from city A to city B between two dates?"""
        return answered(FlightCounter, ledger.flight_counter)

    return routes
