"""`POST /transactions/batch`: many flights at once, as NDJSON or CSV.

All or nothing, and in the ledger one after the other; `on_error=skip` takes the good rows and
reports the bad ones, `dry_run=true` says what would happen. Rows are numbered by their lines.
"""

from functools import partial

from flask import Blueprint, Response, request

from backend.api.answers import answer
from backend.api.problems import InvalidFlights, shown_errors
from backend.api.reading import (
    BadBody,
    body,
    idempotency_key,
    one_of,
    only,
    parameters,
    query_string,
)
from backend.api.writing import Json, Writing, mode_of
from backend.ledger import Ledger

KINDS = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/csv": "csv",
}


def blueprint(ledger: Ledger, writing: Writing) -> Blueprint:
    """Batches for `ledger`."""
    routes = Blueprint("batch", __name__)
    most_bytes = ledger.settings.max_body_bytes
    most_flights = ledger.settings.mempool_transactions

    @routes.post("/transactions/batch")
    def add_batch() -> Response:
        """Accept many flights: all or none, or with on_error=skip the good ones."""
        writing.require_token()
        given = parameters(query_string(request))
        only(given, "mode", "on_error", "dry_run")
        mode = mode_of(given)
        skips = one_of("on_error", given, "reject", "skip") == "skip"
        is_dry = one_of("dry_run", given, "false", "true") == "true"
        kind = KINDS.get(request.mimetype)
        if kind is None:
            reason = f"must be sent as Content-Type: {' or '.join(KINDS)}"
            raise BadBody(415, request.mimetype, reason)
        data = body(request, most_bytes)
        key = idempotency_key(request, data)
        batch = ledger.batch_of(data, kind)
        if batch.bad and not (skips or is_dry):
            raise InvalidFlights(batch.bad)
        bad: Json = {"rejected": len(batch.bad), "errors": shown_errors(batch.bad)}
        if is_dry or not batch.flights:
            accepted = len(batch.flights) if skips or not batch.bad else 0
            return answer({"dry_run": is_dry, "accepted": accepted, **bad})
        if len(batch.flights) > most_flights:
            raise BadBody(413, f"{len(batch.flights)} flights", "are more than may be pending")
        return writing.accept(mode, partial(ledger.add_batch, batch.flights, key=key), **bad)

    return routes
