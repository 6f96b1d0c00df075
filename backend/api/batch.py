"""`POST /transactions/batch`: accepts many flights at once, as NDJSON, CSV or what `import` reads.

Either all flights are accepted or none, and their ids follow one another. `on_error=skip` accepts
the good rows and reports the bad ones; `duplicates=skip` leaves out flights that the ledger has;
`dry_run=true` only says what would happen. Rows are numbered by their lines.
"""

from functools import partial

from flask import Response

from backend.api.json_answers import answer, encode
from backend.api.operation import ADDING, Media, Operation
from backend.api.problems import InvalidFlights, shown_errors
from backend.api.reading import BadBody, body, idempotency_key, mimetype
from backend.api.routes import Lane, Row
from backend.api.schemas import FLIGHT_EXAMPLE
from backend.api.writing import DRY_RUN, MODE, Writing, accepted
from backend.base.day_orders import MONTH_FIRST, ORDERS
from backend.chain.json_objects import Json
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Choice, Given
from backend.serving.environs import Environ
from backend.sources.posted_batch import ANY, Batch, batch_of
from backend.sources.source import CANCELLED, NOT_ARRIVED, require_days

KINDS = {
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/csv": "csv",
    "application/octet-stream": ANY,
}

ON_ERROR = Choice(
    "on_error",
    "What to do if a row is invalid: `reject` accepts no flight, `skip` accepts the valid rows.",
    "skip",
    default="reject",
    choices=("reject", "skip"),
)
DUPLICATES = Choice(
    "duplicates",
    "What to do with flights that the ledger has: `accept` adds them again, `skip` leaves them "
    "out. Two records are of one flight if day, carrier, number, origin, destination and scheduled "
    "departure agree. Records that contradict stored ones are listed in `conflicting`.",
    "skip",
    default="accept",
    choices=("accept", "skip"),
)
PROVEN = "proven"
DATES = Choice(
    "dates",
    f"How days are written: `{PROVEN}` concludes that from the whole column, and refuses the body "
    "if both the day and the month may come first.",
    MONTH_FIRST,
    default=PROVEN,
    choices=(PROVEN, *ORDERS),
)
FILE = {"type": "string", "format": "binary"}  # so that generated clients send files
STRANGERS_BYTES = 5 << 20  # of a batch that is tried without a token
EXAMPLES = {
    "ndjson": encode(FLIGHT_EXAMPLE).decode() + "\n",
    "csv": "".join(
        ",".join(f'"{cell}"' for cell in cells) + "\r\n"
        for cells in (FLIGHT_EXAMPLE, FLIGHT_EXAMPLE.values())
    ),
}
ADD_BATCH = Operation(
    "add_batch",
    ADDING,
    "Accept many flights, one per line",
    accepted(
        "BatchReceipt",
        "BatchTried",
        "Nothing was accepted: it was a dry run, or no row is good, or the ledger has all of them "
        "(`duplicates=skip`). `accepted` counts the flights that would be accepted. `duplicates` "
        "counts those of which the ledger has a record that says the same, and `duplicate_of` has "
        "the ids of the first hundred; `already_there` counts those that are left out for that. "
        "`understood` says what the body was taken for.",
        "The flights are in blocks.",
        "The flights are accepted and pending.",
    ),
    parameters=(MODE, ON_ERROR, DUPLICATES, DATES, DRY_RUN),
    body={kind: Media(FILE, EXAMPLES.get(form, EXAMPLES["csv"])) for kind, form in KINDS.items()},
    writes=True,
    takes_key=True,
)


def rows(ledger: Ledger, writing: Writing) -> list[Row]:
    """Return the route for batches."""
    most_bytes = ledger.settings.max_body_bytes
    most_flights = ledger.settings.mempool_transactions

    def add_batch(environ: Environ, given: Given) -> Response:
        is_dry = DRY_RUN.of(given) == "true"
        writing.require_token(environ, is_dry=is_dry)
        mode = MODE.of(given)
        skips = ON_ERROR.of(given) == "skip"
        skips_known = DUPLICATES.of(given) == "skip"
        kind = _kind_of(environ)
        is_stranger = writing.is_stranger(environ)
        data = body(environ, min(most_bytes, STRANGERS_BYTES) if is_stranger else most_bytes)
        key = idempotency_key(environ, data)
        stops = not (skips or is_dry)
        pause = partial(writing.pause, environ)
        dates = DATES.of(given)
        order = "" if dates == PROVEN else dates
        airports = ledger.airports()
        batch = batch_of(
            data, kind, most_flights, dates=order, ledger=airports, stops=stops, pause=pause
        )
        if batch.errors and stops:
            raise _refusal(batch)
        _require_not_too_many(batch, most_flights)
        require_days(len(batch.flights), batch.misdated, "body", f"{batch.rows_read:,} rows")
        read = _what_was_read(batch, with_sample=is_dry)
        if is_dry or not batch.flights:
            tried = ledger.submitter.try_batch(batch.flights, skips=skips_known)
            if batch.errors and not skips:
                tried["accepted"] = 0
            return answer({"dry_run": is_dry, **tried, **read})
        add = partial(ledger.submitter.add_batch, batch.flights, key=key, skips=skips_known)
        return writing.answer(mode, add, **read)

    return [Row("POST", "/transactions/batch", ADD_BATCH, add_batch, writing.lane_of(Lane.BATCH))]


def _kind_of(environ: Environ) -> str:
    """Return how the body is written. Raises BadBody for a type that is not read."""
    given = mimetype(environ)
    if given not in KINDS:
        raise BadBody(415, given, f"must be sent as Content-Type: {' or '.join(KINDS)}")
    return KINDS[given]


def _require_not_too_many(batch: Batch, most_flights: int) -> None:
    if len(batch.flights) > most_flights:
        reason = f"are too many; send at most {most_flights:,} in one batch"
        raise BadBody(413, f"more than {most_flights:,} flights", reason)
    if batch.rejected > most_flights:
        reason = f"are too many; at most {most_flights:,} may be left out of a batch"
        raise BadBody(413, f"more than {most_flights:,} bad rows", reason)


def _what_was_read(batch: Batch, *, with_sample: bool) -> Json:
    assert batch.understood is not None
    return {
        "rejected": batch.rejected,
        "rejected_cancelled": batch.states[CANCELLED],
        "rejected_not_arrived": batch.states[NOT_ARRIVED],
        "errors": shown_errors(batch.errors),
        "understood": batch.understood.members(with_sample=with_sample),
    }


def _refusal(batch: Batch) -> InvalidFlights:
    """Return the error for a batch with bad rows. It says where the reading stopped."""
    read = {"rows_read": batch.rows_read, "rejected": batch.rejected, "stopped": not batch.is_whole}
    return InvalidFlights(batch.errors, **read)
