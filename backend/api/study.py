"""The paths of the study's own service, so that load scripts written for it run unchanged.

    GET  /transactions?OP_CARRIER_FL_NUM=&FL_DATE=   as /filter_transactions
    POST /new_transaction                            as POST /transactions, but 201 when durable
    GET  /transactions_pages?page=&per_page=         mined transactions, in the order of their ids
    GET  /mine                                       405: only the miner mines

Pages count from 0. The study answered 404 behind the last page; so do we.
"""

from functools import partial

from flask import Blueprint, Response, request

from backend.api.answering import Answering, question
from backend.api.answers import answer
from backend.api.operation import JSON, STUDY, Answer, Media, Operation
from backend.api.schemas import ref
from backend.api.writing import ONE_FLIGHT, Writing, sent_flight
from backend.chain.block import MAX_TRANSACTIONS
from backend.errors import NotFound
from backend.ledger import Ledger
from backend.parameters import Number
from backend.questions import FilterTransactions

PAGE = Number("page", "From 0.", "2", default=0)
PER_PAGE = Number(
    "per_page", "Transactions of a page.", "5", default=100, least=1, most=MAX_TRANSACTIONS
)

FLIGHT_STATUS = question(
    FilterTransactions,
    "flight_status",
    STUDY,
    "As /filter_transactions",
    "Legs",
    "The legs.",
)
NEW_TRANSACTION = Operation(
    "new_transaction",
    STUDY,
    "As POST /transactions, but 201 when it is on the disk",
    {201: Answer("It is accepted.", {JSON: Media(ref("Receipt"))}, headers=("Location",))},
    body=ONE_FLIGHT,
    writes=True,
)
TRANSACTIONS_PAGES = Operation(
    "transactions_pages",
    STUDY,
    "Mined transactions in the order of their ids, in pages",
    {200: Answer("A page; 404 behind the last.", {JSON: Media(ref("Transactions"))})},
    parameters=(PAGE, PER_PAGE),
    errors=(404,),
)


def blueprint(ledger: Ledger, answering: Answering, writing: Writing) -> Blueprint:
    """The study's paths to `ledger`."""
    routes = Blueprint("study", __name__)

    @routes.get("/transactions")
    @FLIGHT_STATUS
    def flight_status() -> Response:
        """What happened to flight N on day D?"""
        return answering.answered(FilterTransactions, ledger.filter_transactions)

    @routes.post("/new_transaction")
    @NEW_TRANSACTION
    def new_transaction() -> Response:
        """Accept one flight; durable when this answers."""
        writing.require_token(request.environ)
        NEW_TRANSACTION.given()
        flight, _ = sent_flight(request.environ)
        response = writing.accept("sync", partial(ledger.add, flight))
        response.status_code = 201
        return response

    @routes.route("/mine", methods=["OPTIONS"], provide_automatic_options=False)
    def mine() -> Response:
        """Nothing is allowed here: blocks are mined by the miner alone."""
        return Response(headers={"Allow": "OPTIONS"})

    @routes.get("/transactions_pages")
    @TRANSACTIONS_PAGES
    def transactions_pages() -> Response:
        """One page of all mined transactions."""
        given = TRANSACTIONS_PAGES.given()
        page, count = PAGE.of(given), PER_PAGE.of(given)
        found = ledger.transactions(page * count, count)
        if not found:
            raise NotFound(f"there is no page {page} of {count} transactions")
        return answer({"transactions": found})

    return routes
