"""A transaction: its fields, its block, and whether it is pending or mined."""

from flask import Blueprint, Response, render_template, request

from frontend import fields
from frontend.asking import filled_in
from frontend.backend_client import Backend, Json
from frontend.tables import csv_twin, json_twin

COLUMNS = (*fields.TRANSACTION_NAMES, "BLOCK_HEIGHT", "state")


def blueprint(backend: Backend) -> Blueprint:
    """The page of a transaction, the part of it that changes, and its twins."""
    routes = Blueprint("transactions", __name__)

    def asked(transaction_id: int) -> Json:
        return backend.get(f"/transactions/{transaction_id}", filled_in(request.args))

    @routes.get("/transactions/<int:transaction_id>")
    def transaction(transaction_id: int) -> str:
        """All that is known of it."""
        found, tip = asked(transaction_id), backend.get("/tip")
        return render_template(
            "transaction.html",
            found=found,
            tip=tip,
            number_of_transactions=tip["transactions"] + tip["pending"],
            fields=list(fields.in_words(fields.TRANSACTION, found["transaction"])),
        )

    @routes.get("/transactions/<int:transaction_id>/state")
    def state(transaction_id: int) -> str:
        """What of it changes, to be put in its place by `refresh.js`."""
        return render_template(
            "transaction_state.html", found=asked(transaction_id), tip=backend.get("/tip")
        )

    @routes.get("/transactions/<int:transaction_id>.json")
    def transaction_json(transaction_id: int) -> Response:
        """As the backend has it."""
        return json_twin(asked(transaction_id))

    @routes.get("/transactions/<int:transaction_id>.csv")
    def transaction_csv(transaction_id: int) -> Response:
        """One row."""
        found = asked(transaction_id)
        height = found["block"] and found["block"]["height"]
        row = {**found["transaction"], "BLOCK_HEIGHT": height, "state": found["state"]}
        return csv_twin(COLUMNS, [row])

    return routes
