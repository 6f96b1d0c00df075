"""`GET /filter_transactions`, `/average_delays` and `/flight_counter`."""

from flask import Blueprint, Response

from backend.api.answering import Answering
from backend.ledger import Ledger
from backend.questions import AverageDelays, FilterTransactions, FlightCounter


def blueprint(ledger: Ledger, answering: Answering) -> Blueprint:
    """The three questions to `ledger`."""
    routes = Blueprint("questions", __name__)
    answered = answering.answered

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
