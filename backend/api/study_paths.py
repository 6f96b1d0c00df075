"""The paths of the study's own service, so that load scripts written for it run unchanged.

    GET  /transactions?OP_CARRIER_FL_NUM=&FL_DATE=   as /filter_transactions
    POST /new_transaction                            as POST /transactions, but 201 when durable
    GET  /transactions_pages?page=&per_page=         mined transactions, in the order of their ids
    GET  /mine                                       405: only the miner mines

Pages count from 0. The study answered 404 after the last page, and so does this service.
"""

from flask import Flask, Response

from backend.api.json_answers import encode, versioned
from backend.api.operation import STUDY, Operation, in_json
from backend.api.question_answers import Answering, question, row
from backend.api.routes import Lane, Post, Row
from backend.api.writing import ONE_FLIGHT, Writing
from backend.base.errors import NotFound
from backend.base.words import counted
from backend.chain.block import MAX_TRANSACTIONS
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Given, Number
from backend.questions.values import FilterTransactions
from backend.serving.environs import Environ
from backend.serving.lanes import Group

PAGE = Number("page", "From 0.", "2", default=0)
PER_PAGE = Number(
    "per_page", "Transactions on a page.", "5", default=100, least=1, most=MAX_TRANSACTIONS
)

FLIGHT_STATUS = question(
    FilterTransactions,
    "flight_status",
    STUDY,
    "Answer as /filter_transactions does",
    "Legs",
    "The legs.",
)
NEW_TRANSACTION = Operation(
    "new_transaction",
    STUDY,
    "Accept a flight as POST /transactions does, and answer 201 once it is on the disk",
    {201: in_json("The flight is accepted.", "Receipt", headers=("Location",))},
    body=ONE_FLIGHT,
    writes=True,
    takes_key=True,
)
TRANSACTIONS_PAGES = Operation(
    "transactions_pages",
    STUDY,
    "List mined transactions by id, in pages",
    {200: in_json("A page; 404 after the last.", "Transactions")},
    parameters=(PAGE, PER_PAGE),
    errors=(404,),
    has_etag=True,
)


def rows(ledger: Ledger, answering: Answering, writing: Writing) -> list[Row]:
    """Return the routes of the study's paths to `ledger`."""

    def prepare(environ: Environ) -> Post:
        post = writing.prepare(environ)
        return post._replace(answer=lambda accepted: _created(post.answer(accepted)))

    def new_transaction(environ: Environ, _: Given) -> Response:
        return writing.accept(prepare(environ))

    def transactions_pages(environ: Environ, given: Given) -> Response:
        page, count = PAGE.of(given), PER_PAGE.of(given)
        transactions = ledger.transactions(page * count, count)
        if not transactions:
            size = counted(count, "transaction")
            raise NotFound(f"page {page} is beyond the last one, with {size} a page")
        return versioned(environ, encode({"transactions": transactions}))

    together = Group(prepare, writing.accept_all)
    return [
        row(answering, FLIGHT_STATUS, FilterTransactions, "/transactions"),
        Row("POST", "/new_transaction", NEW_TRANSACTION, new_transaction, Lane.GROUPED, together),
        Row("GET", "/transactions_pages", TRANSACTIONS_PAGES, transactions_pages, Lane.READ),
    ]


def install(app: Flask) -> None:
    """Let `app` answer 405 at `/mine`, because only the miner mines blocks."""

    @app.route("/mine", methods=["OPTIONS"], provide_automatic_options=False)
    def mine() -> Response:
        return Response(headers={"Allow": "OPTIONS"})


def _created(response: Response) -> Response:
    response.status_code = 201
    return response
