"""Files that prove what the pages say, as the service makes them: proofs, checkpoint and key.

They are passed on while they come, because a proof of an answer has a line for each block.
"""

from flask import Blueprint, Response, request

from frontend.backend_client import Backend
from frontend.evidence import PROVED


def blueprint(backend: Backend) -> Blueprint:
    """Routes to the files, with the addresses that they have at the service."""
    routes = Blueprint("proofs", __name__)

    def passed_on(saved_as: str = "") -> Response:
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

    @routes.get("/transactions/<int:transaction_id>/proof")
    def of_transaction(transaction_id: int) -> Response:
        """The proof that a transaction is in the ledger."""
        return passed_on(f"transaction-{transaction_id}.proof.json")

    @routes.get(f"/<any({','.join(PROVED)}):question>/proof")
    def of_answer(question: str) -> Response:
        """An answer, and what proves it; as a zip file also all that is needed to check it."""
        form = "zip" if request.args.get("format") == "zip" else "ndjson"
        return passed_on(f"{question}.{form}")

    for path in ("/log/key", "/log/checkpoint", "/proofs/consistency"):
        routes.add_url_rule(path, path.strip("/").replace("/", "_"), passed_on)
    return routes
