"""A transaction: its fields, its block, and whether it is pending or mined."""

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.backend_client import Json
from frontend.context import backend
from frontend.form_request import Values, filled_in
from frontend.twins import Twin, twins

NOTHING_GIVEN: Values = {}
COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "state")

routes = Blueprint("transactions", __name__)


@routes.get("/transactions/<int:transaction_id>")
def transaction(transaction_id: int) -> str:
    answer = standing(transaction_id, filled_in(request.args))
    fields = field_labels.in_words(field_labels.TRANSACTION_FIELDS, answer["transaction"])
    content = field_labels.canonical(answer["transaction"], field_labels.TRANSACTION_NAMES)
    return render_template("transaction.html", **answer, fields=fields, canonical=content)


@routes.get("/transactions/<int:transaction_id>/state")
def state(transaction_id: int) -> str:
    """Return the part of the page that changes; `refresh.js` puts it in its place."""
    return render_template("state.html", **standing(transaction_id))


@twins(routes, "/transactions/<int:transaction_id>")
def twin(transaction_id: int) -> Twin:
    """Return the backend's answer about a transaction; as CSV one row."""
    answer = backend.get(f"/transactions/{transaction_id}", filled_in(request.args))
    height = answer["block"] and answer["block"]["height"]
    row = {**answer["transaction"], "BLOCK_HEIGHT": height, "state": answer["state"]}
    return Twin(answer, COLUMNS, [row])


def standing(transaction_id: int, given: Values = NOTHING_GIVEN) -> Json:
    """Return the answer of `/transactions/ID`, and the `tip` of the ledger.

    given: further parameters. Raises BackendAway, Refused.
    """
    answer = backend.get(f"/transactions/{transaction_id}", given)
    return {**answer, "tip": backend.get("/tip")}
