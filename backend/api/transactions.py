"""`POST /transactions` and `GET /transactions/ID`. `writing` tells what each mode promises."""

from flask import Response
from werkzeug.routing import BaseConverter

from backend.api.conditions import SETTLED, tag_of, unchanged
from backend.api.json_answers import answer, versioned
from backend.api.operation import ADDING, BLOCKS, JSON, Answer, Media, Operation
from backend.api.reading import idempotency_key
from backend.api.routes import Lane, Post, Row
from backend.api.writing import DRY_RUN, MODE, ONE_FLIGHT, Writing, accepted, sent_flight
from backend.base.errors import FlightchainError
from backend.chain.flight import as_mapping
from backend.ledger.ledger import Ledger
from backend.questions.answer_types import ref
from backend.questions.parameters import Number
from backend.serving.environs import Environ
from backend.serving.lanes import Group

TRANSACTION_ID = Number("TRANSACTION_ID", "The flight's position in the ledger, from 0.", "0")

ADD_TRANSACTION = Operation(
    "add_transaction",
    ADDING,
    "Accept one flight",
    {
        200: Answer(
            "With `dry_run`: `flight` would be accepted; `duplicate_of` names an equal one.",
            {JSON: Media(ref("Tried"))},
        ),
        **accepted("Receipt", "The flight is in a block.", "The flight is accepted and pending."),
    },
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
        200: Answer(
            "The transaction; it has an ETag once it is mined.",
            {JSON: Media(ref("TransactionState"))},
            may_have=("ETag",),
        )
    },
    in_path=(TRANSACTION_ID,),
    errors=(404,),
    has_etag=True,
)


class Id(BaseConverter):
    """An id in a path: any text but `batch`, which has a route of its own for POST.

    So `GET /transactions/batch` is 405, and not an invalid id.
    """

    regex = "(?!batch$)[^/]+"
    part_isolating = True  # it never takes a slash


def rows(ledger: Ledger, writing: Writing) -> list[Row]:
    """The routes for the transactions of `ledger`."""

    def prepare(environ: Environ) -> Post:
        writing.require_token(environ)
        mode = MODE.of(ADD_TRANSACTION.given(environ))
        flight, data = sent_flight(environ)
        return writing.post(mode, flight, idempotency_key(environ, data))

    def add(environ: Environ) -> Response:
        """Accept one flight. mode=sync: 202 when durable; commit: 201 when mined; async: 202."""
        if DRY_RUN.of(ADD_TRANSACTION.given(environ)) == "true":
            return tried(environ)
        return writing.accept(prepare(environ))

    def tried(environ: Environ) -> Response:
        """Whether the flight would be accepted, and which one equals it.

        This writes nothing, so it needs no token.
        """
        flight, _ = sent_flight(environ)
        (copy,) = ledger.submitter.copies_of([flight])
        return answer(
            {"dry_run": True, "accepted": 1, "duplicate_of": copy, "flight": as_mapping(flight)}
        )

    def transaction(environ: Environ, transaction_id: str) -> Response:
        """A transaction, pending or mined, with its block."""
        GET_TRANSACTION.given(environ)
        number = TRANSACTION_ID.parse(transaction_id)
        where = ledger.locate(number)
        if where is None:
            return answer(ledger.transaction(number))
        tag = tag_of(where.hash, "transaction", str(number))
        return unchanged(environ, tag, SETTLED) or versioned(
            environ, ledger.encoded_transaction(number, where), tag, SETTLED
        )

    def lane_of_transaction(environ: Environ, transaction_id: str) -> Lane:  # noqa: ARG001
        """INLINE for a transaction in a block at hand."""
        try:
            is_at_hand = ledger.has_transaction(TRANSACTION_ID.parse(transaction_id))
        except (FlightchainError, OSError):  # the handler meets the same error, and answers with it
            return Lane.READ
        return Lane.INLINE if is_at_hand else Lane.READ

    return [
        Row(
            "POST",
            "/transactions",
            ADD_TRANSACTION,
            add,
            writing.lane_of(Lane.GROUPED),
            Group(prepare, writing.accept_all),
        ),
        Row(
            "GET",
            "/transactions/<id:transaction_id>",
            GET_TRANSACTION,
            transaction,
            lane_of_transaction,
        ),
    ]
