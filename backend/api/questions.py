"""The three questions: `GET /filter_transactions`, `/average_delays` and `/flight_counter`."""

from flask import Response

from backend.api.operation import QUESTIONS
from backend.api.question_answers import Answering, lane_of, question
from backend.api.routes import Row
from backend.ledger.ledger import Ledger
from backend.questions.values import AverageDelays, FilterTransactions, FlightCounter
from backend.serving.environs import Environ

FILTER_TRANSACTIONS = question(
    FilterTransactions,
    "filter_transactions",
    QUESTIONS,
    "What happened to flight N on day D?",
    "Legs",
    "The legs, oldest id first; the list may be empty.",
)
AVERAGE_DELAYS = question(
    AverageDelays,
    "average_delays",
    QUESTIONS,
    "How late was carrier C on average between two dates?",
    "AverageDelays",
    "Means, counts and shares; a mean of no flights is null.",
)
FLIGHT_COUNTER = question(
    FlightCounter,
    "flight_counter",
    QUESTIONS,
    "How many flights went from city A to city B between two dates?",
    "FlightCount",
    "The count.",
)


def rows(ledger: Ledger, answering: Answering) -> list[Row]:
    """The routes for the three questions to `ledger`."""

    def filter_transactions(environ: Environ) -> Response:
        """What happened to flight N on day D?"""
        return answering.answered(environ, FilterTransactions, ledger.answers.filter_transactions)

    def average_delays(environ: Environ) -> Response:
        """How late was carrier C on average between two dates?"""
        return answering.answered(environ, AverageDelays, ledger.answers.average_delays)

    def flight_counter(environ: Environ) -> Response:
        """How many flights went from city A to city B between two dates?"""
        return answering.answered(environ, FlightCounter, ledger.answers.flight_counter)

    return [
        Row("GET", f"/{operation.name}", operation, handler, lane_of(kind))
        for kind, operation, handler in (
            (FilterTransactions, FILTER_TRANSACTIONS, filter_transactions),
            (AverageDelays, AVERAGE_DELAYS, average_delays),
            (FlightCounter, FLIGHT_COUNTER, flight_counter),
        )
    ]
