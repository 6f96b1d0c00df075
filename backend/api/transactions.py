"""`POST /transactions` and `GET /transactions/ID`."""

from flask import Blueprint, Response, request

from backend.api.answers import answer, encode, versioned
from backend.api.conditions import SETTLED, tag_of, unchanged
from backend.api.problems import InvalidFlights
from backend.api.reading import json_object, only, parameters, query_string, whole_number
from backend.api.waiting import CommitWaiters
from backend.chain.flight import examine
from backend.errors import InvalidQuery
from backend.ledger import Ledger

MODES = ("sync", "commit")


def blueprint(ledger: Ledger) -> Blueprint:
    """The transactions of `ledger`."""
    routes = Blueprint("transactions", __name__)
    waiters = CommitWaiters(ledger.settings)

    @routes.post("/transactions")
    def add() -> Response:
        """Accept one flight. mode=sync: 202 when durable; commit: 201 when mined."""
        given = parameters(query_string(request))
        only(given, "mode")
        mode = given.get("mode", "sync")
        if mode not in MODES:
            raise InvalidQuery("mode", mode, f"must be one of {', '.join(MODES)}")
        flight, problems = examine(json_object(request))
        if problems:
            raise InvalidFlights(problems)
        with waiters.wait_s(mode == "commit") as wait_s:
            receipt = ledger.add(flight, wait_s=wait_s)
        response = answer(receipt, 201 if receipt["state"] == "mined" else 202)
        response.headers["Location"] = f"/transactions/{receipt['TRANSACTION_ID']}"
        return response

    @routes.get("/transactions/<transaction_id>")
    def transaction(transaction_id: str) -> Response:
        """A transaction, pending or mined, with its block."""
        only(parameters(query_string(request)))
        number = whole_number("TRANSACTION_ID", transaction_id)
        block_hash = ledger.block_hash_of_transaction(number)
        if block_hash is None:
            return answer(ledger.transaction(number))
        tag = tag_of(block_hash, "transaction", str(number))
        return unchanged(request.environ, tag, SETTLED) or versioned(
            request.environ, encode(ledger.transaction(number)), tag, SETTLED
        )

    return routes
