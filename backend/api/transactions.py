"""`POST /transactions` and `GET /transactions/ID`. What the modes promise: see `writing`."""

from functools import partial

from flask import Blueprint, Response, request

from backend.api.answers import answer, versioned
from backend.api.conditions import SETTLED, tag_of, unchanged
from backend.api.problems import InvalidFlights
from backend.api.reading import (
    idempotency_key,
    json_object,
    only,
    parameters,
    query_string,
    whole_number,
)
from backend.api.writing import Writing, mode_of
from backend.chain.flight import examine
from backend.ledger import Ledger


def blueprint(ledger: Ledger, writing: Writing) -> Blueprint:
    """The transactions of `ledger`."""
    routes = Blueprint("transactions", __name__)

    @routes.post("/transactions")
    def add() -> Response:
        """Accept one flight. mode=sync: 202 when durable; commit: 201 when mined; async: 202."""
        writing.require_token()
        given = parameters(query_string(request))
        only(given, "mode")
        mode = mode_of(given)
        record, data = json_object(request)
        flight, problems = examine(record)
        if problems:
            raise InvalidFlights(problems)
        return writing.accept(mode, partial(ledger.add, flight, key=idempotency_key(request, data)))

    @routes.get("/transactions/<transaction_id>")
    def transaction(transaction_id: str) -> Response:
        """A transaction, pending or mined, with its block."""
        only(parameters(query_string(request)))
        number = whole_number("TRANSACTION_ID", transaction_id)
        where = ledger.where_mined(number)
        if where is None:
            return answer(ledger.transaction(number))
        tag = tag_of(where.hash, "transaction", str(number))
        return unchanged(request.environ, tag, SETTLED) or versioned(
            request.environ, ledger.encoded_transaction(number, where), tag, SETTLED
        )

    return routes
