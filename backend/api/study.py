"""The paths of the study's own service, so that load scripts written for it run unchanged.

    GET  /transactions?OP_CARRIER_FL_NUM=&FL_DATE=   as /filter_transactions
    POST /new_transaction                            as POST /transactions, but 201 when durable
    GET  /transactions_pages?page=&per_page=         mined transactions, in the order of their ids
    GET  /mine                                       405: only the miner mines

Pages count from 0. The study answered 404 behind the last page; so do we.
"""

from functools import partial

from flask import Blueprint, Response, request

from backend.api.answering import Answering
from backend.api.answers import answer
from backend.api.problems import InvalidFlights
from backend.api.reading import json_object, only, parameters, query_string, whole_number
from backend.api.writing import Writing
from backend.chain.block import MAX_TRANSACTIONS
from backend.chain.flight import examine
from backend.errors import NotFound
from backend.ledger import Ledger
from backend.questions import FilterTransactions

DEFAULT_PER_PAGE = "100"


def blueprint(ledger: Ledger, answering: Answering, writing: Writing) -> Blueprint:
    """The study's paths to `ledger`."""
    routes = Blueprint("study", __name__)

    @routes.get("/transactions")
    def flight_status() -> Response:
        """What happened to flight N on day D?"""
        return answering.answered(FilterTransactions, ledger.filter_transactions)

    @routes.post("/new_transaction")
    def new_transaction() -> Response:
        """Accept one flight; durable when this answers."""
        writing.require_token()
        only(parameters(query_string(request)))
        record, _ = json_object(request)
        flight, problems = examine(record)
        if problems:
            raise InvalidFlights(problems)
        response = writing.accept("sync", partial(ledger.add, flight))
        response.status_code = 201
        return response

    @routes.route("/mine", methods=["OPTIONS"], provide_automatic_options=False)
    def mine() -> Response:
        """Nothing is allowed here: blocks are mined by the miner alone."""
        return Response(headers={"Allow": "OPTIONS"})

    @routes.get("/transactions_pages")
    def transactions_pages() -> Response:
        """One page of all mined transactions."""
        given = parameters(query_string(request))
        only(given, "page", "per_page")
        page = whole_number("page", given.get("page", "0"))
        per_page = given.get("per_page", DEFAULT_PER_PAGE)
        count = whole_number("per_page", per_page, 1, MAX_TRANSACTIONS)
        found = ledger.transactions(page * count, count)
        if not found:
            raise NotFound(f"there is no page {page} of {count} transactions")
        return answer({"transactions": found})

    return routes
