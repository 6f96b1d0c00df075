"""`POST /transactions`, `GET /transactions/ID`, and `GET /receipts/RECEIPT` in a cluster.

`writing` reads the flight of a POST, and tells what each mode promises.
"""

from flask import Response

from backend.api.body_types import Tried
from backend.api.conditions import SETTLED, tag_of, unchanged
from backend.api.json_answers import answer, versioned
from backend.api.operation import ADDING, BLOCKS, Operation, in_json
from backend.api.routes import Lane, Row
from backend.api.writing import DRY_RUN, MODE, ONE_FLIGHT, Writing, accepted, sent_flight
from backend.chain.flight import as_mapping
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Given, Number, Text
from backend.serving.environs import Environ
from backend.serving.lanes import Group

TRANSACTION_ID = Number("TRANSACTION_ID", "The flight's position in the ledger, from 0.", "0")

ADD_TRANSACTION = Operation(
    "add_transaction",
    ADDING,
    "Accept one flight",
    accepted(
        "Receipt",
        "Tried",
        "With `dry_run`: `flight` would be accepted. `duplicate_of` names a record that says "
        "the same, `conflicts_with` one that contradicts it.",
        "The flight is in a block.",
        "The flight is accepted and pending.",
    ),
    parameters=(MODE, DRY_RUN),
    body=ONE_FLIGHT,
    writes=True,
    takes_key=True,
)
GET_TRANSACTION = Operation(
    "get_transaction",
    BLOCKS,
    "Show a flight, pending or mined, with its block",
    {
        200: in_json(
            "The transaction; it has an ETag once it is mined.",
            "TransactionState",
            may_have=("ETag",),
        )
    },
    in_path=(TRANSACTION_ID,),
    errors=(404,),
    has_etag=True,
)
RECEIPT = Text(
    "RECEIPT",
    "The node that accepted the flight, its number there, and a tag.",
    "node0-17-9f86d081",
)

GET_RECEIPT = Operation(
    "get_receipt",
    BLOCKS,
    "Show a flight that a node of a cluster accepted",
    {
        200: in_json(
            "The transaction; its id is null until it is mined. A ledger that belongs to no "
            "cluster has no receipts and answers 404.",
            "AcceptedState",
        )
    },
    in_path=(RECEIPT,),
    errors=(404,),
)


def rows(ledger: Ledger, writing: Writing) -> list[Row]:
    """Return the routes for the transactions of `ledger`."""

    def add(environ: Environ, given: Given) -> Response:
        if DRY_RUN.of(given) == "true":
            return tried(environ)
        return writing.accept(writing.prepare(environ))

    def tried(environ: Environ) -> Response:
        writing.require_token(environ, is_dry=True)
        flight, _ = sent_flight(environ)
        known = ledger.submitter.compared([flight]).members_of_one()
        return answer(Tried(dry_run=True, accepted=1, **known, flight=as_mapping(flight)))

    def transaction(environ: Environ, _: Given, transaction_id: str) -> Response:
        number = TRANSACTION_ID.parse(transaction_id)
        where = ledger.cached_blocks.where_transaction(number)
        if where is None:
            return answer(ledger.transaction(number))
        tag = tag_of(where.hash, "transaction", str(number))
        return unchanged(environ, tag, SETTLED) or versioned(
            environ, ledger.encoded_transaction(number, where), SETTLED, tag
        )

    def receipt(*_: object, receipt: str) -> Response:
        return answer(ledger.accepted_as(receipt))

    def lane_of_transaction(*_: object, transaction_id: str) -> Lane:
        is_cached = ledger.cached_blocks.has_transaction(TRANSACTION_ID.parse(transaction_id))
        return Lane.INLINE if is_cached else Lane.READ

    return [
        Row(
            "POST",
            "/transactions",
            ADD_TRANSACTION,
            add,
            writing.lane_of(Lane.GROUPED),
            Group(writing.prepare, writing.accept_all),
        ),
        Row(
            "GET",
            "/transactions/<id:transaction_id>",
            GET_TRANSACTION,
            transaction,
            lane_of_transaction,
        ),
        Row("GET", "/receipts/<receipt>", GET_RECEIPT, receipt),
    ]
