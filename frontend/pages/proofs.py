"""Files that prove what the pages say, as the service makes them: proofs, checkpoint and key.

They are passed on while they come, because a proof of an answer has a line for each block. Their
addresses are those that they have at the service.
"""

from flask import Blueprint, Response, request

from frontend.context import backend
from frontend.question import KINDS

routes = Blueprint("proofs", __name__)


@routes.get("/transactions/<int:transaction_id>/proof")
def proof_of_transaction(transaction_id: int) -> Response:
    return _passed_on(f"transaction-{transaction_id}.proof.json")


@routes.get(f"/<any({','.join(KINDS)}):question>/proof")
def proof_of_answer(question: str) -> Response:
    """Return an answer, and what proves it; as a zip file also all that is needed to check it."""
    form = "zip" if request.args.get("format") == "zip" else "ndjson"
    return _passed_on(f"{question}.{form}")


@routes.get("/log/key")
@routes.get("/log/checkpoint")
@routes.get("/proofs/consistency")
def _passed_on(saved_as: str = "") -> Response:
    """Pass on what the service has at the address of this request.

    saved_as: the name under which a browser saves it. Raises BackendAway, Refused.
    """
    encodings = request.headers.get("Accept-Encoding", "")
    file = backend.file(request.path, request.args.to_dict(), encodings)
    response = Response(file.pieces(), headers=file.headers)
    response.call_on_close(file.close)
    if saved_as:
        response.headers["Content-Disposition"] = f'attachment; filename="{saved_as}"'
    return response
