"""`GET /filter_transactions`, `/average_delays` and `/flight_counter`."""

from flask import Blueprint, Response, request

from backend.api.answers import answer
from backend.api.reading import parameters
from backend.ledger import Ledger
from backend.questions import AverageDelays, FilterTransactions, FlightCounter, asked


def blueprint(ledger: Ledger) -> Blueprint:
    """The three questions to `ledger`."""
    routes = Blueprint("questions", __name__)

    @routes.get("/filter_transactions")
    def filter_transactions() -> Response:
        """What happened to flight N on day D?"""
        return answer(ledger.filter_transactions(*asked(FilterTransactions, parameters(request))))

    @routes.get("/average_delays")
    def average_delays() -> Response:
        """How late was carrier C on average between two dates?"""
        return answer(ledger.average_delays(*asked(AverageDelays, parameters(request))))

    @routes.get("/flight_counter")
    def flight_counter() -> Response:
        """How many flights went from city A to city B between two dates?"""
        return answer(ledger.flight_counter(*asked(FlightCounter, parameters(request))))

    return routes
