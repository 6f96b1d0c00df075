"""A transaction: its fields, its block, and whether it is pending or mined."""

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.backend_client import Backend, Json
from frontend.form_request import Values, filled_in
from frontend.twins import Twin, twins

NOTHING_GIVEN: Values = {}
COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "state")


def blueprint(backend: Backend) -> Blueprint:
    """The page of a transaction, the part of it that changes, and its twins."""
    routes = Blueprint("transactions", __name__)

    def asked(transaction_id: int) -> Json:
        return backend.get(f"/transactions/{transaction_id}", filled_in(request.args))

    @routes.get("/transactions/<int:transaction_id>")
    def transaction(transaction_id: int) -> str:
        """All that is known of a transaction."""
        found = standing(backend, transaction_id, filled_in(request.args))
        in_words = list(field_labels.in_words(field_labels.TRANSACTION, found["transaction"]))
        content = field_labels.canonical(found["transaction"], field_labels.TRANSACTION)
        return render_template("transaction.html", **found, fields=in_words, canonical=content)

    @routes.get("/transactions/<int:transaction_id>/state")
    def state(transaction_id: int) -> str:
        """The part of the page that changes; `refresh.js` puts it in its place."""
        return render_template("state.html", **standing(backend, transaction_id))

    @twins(routes, "/transactions/<int:transaction_id>")
    def twin(transaction_id: int) -> Twin:
        """The backend's answer about a transaction; as CSV one row."""
        found = asked(transaction_id)
        height = found["block"] and found["block"]["height"]
        row = {**found["transaction"], "BLOCK_HEIGHT": height, "state": found["state"]}
        return Twin(found, COLUMNS, [row])

    return routes


def standing(backend: Backend, transaction_id: int, given: Values = NOTHING_GIVEN) -> Json:
    """The answer of `/transactions/ID`, and the `tip` of the ledger.

    given: further parameters. Raises BackendAway, Refused.
    """
    found = backend.get(f"/transactions/{transaction_id}", given)
    return {**found, "tip": backend.get("/tip")}
