"""`GET /filter_transactions`, `/average_delays` and `/flight_counter`."""

from flask import Blueprint, Response

from backend.api.answering import Answering, question
from backend.api.direct import direct
from backend.api.operation import QUESTIONS
from backend.ledger import Ledger
from backend.questions import AverageDelays, FilterTransactions, FlightCounter

FILTER_TRANSACTIONS = question(
    FilterTransactions,
    "filter_transactions",
    QUESTIONS,
    "What happened to flight N on day D?",
    "Legs",
    "The legs, oldest id first; none is an answer, too.",
)
AVERAGE_DELAYS = question(
    AverageDelays,
    "average_delays",
    QUESTIONS,
    "How late was carrier C on average between two dates?",
    "AverageDelays",
    "Means, counts and shares; a mean of nothing is null.",
)
FLIGHT_COUNTER = question(
    FlightCounter,
    "flight_counter",
    QUESTIONS,
    "How many flights went from city A to city B between two dates?",
    "FlightCount",
    "The count.",
)


def blueprint(ledger: Ledger, answering: Answering) -> Blueprint:
    """The three questions to `ledger`."""
    routes = Blueprint("questions", __name__)
    answered, usual = answering.answered, answering.usual

    @routes.get("/filter_transactions")
    @FILTER_TRANSACTIONS
    @direct(lambda environ, _: usual(environ, FilterTransactions, ledger.filter_transactions))
    def filter_transactions() -> Response:
        """What happened to flight N on day D?"""
        return answered(FilterTransactions, ledger.filter_transactions)

    @routes.get("/average_delays")
    @AVERAGE_DELAYS
    @direct(lambda environ, _: usual(environ, AverageDelays, ledger.average_delays))
    def average_delays() -> Response:
        """How late was carrier C on average between two dates?"""
        return answered(AverageDelays, ledger.average_delays)

    @routes.get("/flight_counter")
    @FLIGHT_COUNTER
    @direct(lambda environ, _: usual(environ, FlightCounter, ledger.flight_counter))
    def flight_counter() -> Response:
        """How many flights went from city A to city B between two dates?"""
        return answered(FlightCounter, ledger.flight_counter)

    return routes
