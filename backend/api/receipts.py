"""`GET /receipts/RECEIPT`: what a node of a cluster accepted, before and after it is mined."""

from flask import Response

from backend.api.json_answers import answer
from backend.api.operation import BLOCKS, JSON, Answer, Media, Operation
from backend.api.routes import Row
from backend.ledger.ledger import Ledger
from backend.questions.answer_types import ref
from backend.questions.parameters import Text
from backend.serving.environs import Environ

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
        200: Answer(
            "The transaction; its id is null until it is mined. A ledger that belongs to no "
            "cluster has no receipts and answers 404.",
            {JSON: Media(ref("AcceptedState"))},
        )
    },
    in_path=(RECEIPT,),
    errors=(404,),
)


def rows(ledger: Ledger) -> list[Row]:
    """The route for receipts."""

    def receipt(environ: Environ, receipt: str) -> Response:
        """A flight by the receipt that its post was answered with."""
        GET_RECEIPT.given(environ)
        return answer(ledger.accepted_as(receipt))

    return [Row("GET", "/receipts/<receipt>", GET_RECEIPT, receipt)]
