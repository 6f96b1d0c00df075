"""`POST /transactions` and `GET /transactions/ID`. What the modes promise: see `writing`."""

from functools import partial

from flask import Blueprint, Response, request
from werkzeug.routing import BaseConverter

from backend.api.answers import answer, versioned
from backend.api.conditions import SETTLED, Environ, tag_of, unchanged
from backend.api.direct import Act, direct
from backend.api.operation import ADDING, BLOCKS, JSON, Answer, Media, Operation
from backend.api.reading import idempotency_key, query_string
from backend.api.schemas import ref
from backend.api.writing import MODE, ONE_FLIGHT, Writing, accepted, sent_flight
from backend.ledger import Ledger
from backend.parameters import Number

TRANSACTION_ID = Number("TRANSACTION_ID", "Its position in the ledger, from 0.", "0")

ADD_TRANSACTION = Operation(
    "add_transaction",
    ADDING,
    "Accept one flight",
    accepted("Receipt", "It is in a block.", "It is accepted and pending."),
    parameters=(MODE,),
    body=ONE_FLIGHT,
    writes=True,
    takes_key=True,
)
GET_TRANSACTION = Operation(
    "get_transaction",
    BLOCKS,
    "A flight, pending or mined, and its block",
    {
        200: Answer(
            "The transaction; while it is pending without an ETag.",
            {JSON: Media(ref("TransactionState"))},
            may_have=("ETag",),
        )
    },
    in_path=(TRANSACTION_ID,),
    errors=(404,),
    has_etag=True,
)


class Id(BaseConverter):
    """What stands where an id should: anything but `batch`, a route of its own, which is posted
    to. So `GET /transactions/batch` is 405, and not an id that is none.
    """

    regex = "(?!batch$)[^/]+"
    part_isolating = True  # it never takes a slash


def blueprint(ledger: Ledger, writing: Writing) -> Blueprint:
    """The transactions of `ledger`."""
    routes = Blueprint("transactions", __name__)

    def adding(environ: Environ, _rest: str = "") -> Act:
        writing.require_token(environ)
        mode = MODE.of(ADD_TRANSACTION.given_in(query_string(environ)))
        flight, data = sent_flight(environ)
        add = partial(ledger.add, flight, key=idempotency_key(environ, data))
        return partial(writing.accept, mode, add)

    @routes.post("/transactions")
    @ADD_TRANSACTION
    @direct(adding, "POST")
    def add() -> Response:
        """Accept one flight. mode=sync: 202 when durable; commit: 201 when mined; async: 202."""
        return adding(request.environ)()

    def mined(environ: Environ, transaction_id: str) -> Response | None:
        GET_TRANSACTION.given_in(query_string(environ))
        number = TRANSACTION_ID.parse(transaction_id)
        where = ledger.where_mined(number)
        if where is None:
            return None
        tag = tag_of(where.hash, "transaction", str(number))
        return unchanged(environ, tag, SETTLED) or versioned(
            environ, ledger.encoded_transaction(number, where), tag, SETTLED
        )

    @routes.get("/transactions/<id:transaction_id>")
    @GET_TRANSACTION
    @direct(mined)
    def transaction(transaction_id: str) -> Response:
        """A transaction, pending or mined, with its block."""
        found = mined(request.environ, transaction_id)
        return found or answer(ledger.transaction(TRANSACTION_ID.parse(transaction_id)))

    return routes
