"""`GET /flights`: sends flights as CSV or NDJSON, as a stream.

The blocks are read through the ledger's caches, each verified and linked to the one below as in
a scan; memory holds a block or two, whatever is asked for. Ids ascend. `streaming` tells how a
client sees whether it got everything; NDJSON also says in its last line that it is complete, unless
`trailer=false`.

`X-Flightchain-As-Of: HEIGHT HASH` names the block up to which an export counts, in both formats.
"""

from collections.abc import Iterator
from dataclasses import replace

from flask import Response
from werkzeug.exceptions import NotAcceptable

from backend.api.conditions import REVALIDATE, SETTLED, quoted, tag_of, unchanged
from backend.api.encodings import rank_of, weights
from backend.api.flight_lines import (
    AS_OF_HEADER,
    CSV,
    EXPORTED,
    FORMATS,
    IN_LINES,
    NDJSON,
    TRAILER,
    BlockLines,
    LineFormat,
    counted_up_to,
)
from backend.api.operation import READING, Answer, Operation
from backend.api.reading import query_string
from backend.api.routes import Lane, Row
from backend.api.streaming import Streams
from backend.ledger.ledger import Ledger
from backend.questions.answer_types import AsOf
from backend.questions.parameters import AS_OF, FORMAT, Given
from backend.questions.selection import PARAMETERS, Selection, selected
from backend.serving.environs import Environ

_RANGES = {  # the ranges of Accept, the most specific first
    NDJSON.name: ("application/x-ndjson", "application/ndjson", "application/*", "*/*"),
    CSV.name: ("text/csv", "text/*", "*/*"),
}

EXPORT_FLIGHTS = Operation(
    "export_flights",
    READING,
    "Export the flights of some days, as NDJSON or CSV",
    {
        200: Answer(
            "One flight per line, verified while it is sent. The last line of NDJSON says that the "
            "answer is complete, unless `trailer` is `false`.",
            IN_LINES,
            headers=(AS_OF_HEADER, "Content-Disposition"),
        )
    },
    parameters=(*PARAMETERS.values(), AS_OF, FORMAT, TRAILER),
    errors=(404, 406),
    has_etag=True,
)


def rows(ledger: Ledger, streams: Streams) -> list[Row]:
    """Return the route that exports flights from `ledger`."""

    def flights(environ: Environ, given: Given) -> Response:
        query = query_string(environ)
        form = FORMATS[FORMAT.find(given) or accepted_format(environ)]
        if TRAILER.of(given) == "false":
            form = replace(form, footer=CSV.footer)
        selection, height = selected(given)
        as_of = ledger.answers.as_of(height)
        tag = tag_of(as_of.tip_hash, f"flights {form.name}", query)
        cache_control = REVALIDATE if height is None else SETTLED
        response = unchanged(environ, tag, cache_control, is_there=True)
        if response is None:
            lines = lines_of(ledger, form, selection, as_of)
            response = streams.response(environ, lines, form.mimetype, f"flights.{form.name}")
            response.headers[AS_OF_HEADER] = counted_up_to(as_of)
            response.headers["ETag"] = quoted(tag, response.headers.get("Content-Encoding", ""))
            response.headers["Cache-Control"] = cache_control
        response.headers["Vary"] = "Accept, Accept-Encoding"
        return response

    return [Row("GET", "/flights", EXPORT_FLIGHTS, flights, Lane.EXPORT)]


def accepted_format(environ: Environ) -> str:
    """Return the format that Accept prefers; NDJSON without a preference. Raises NotAcceptable."""
    accepted = weights(environ.get("HTTP_ACCEPT") or "*/*")
    ranks = {name: rank_of(ranges, accepted) for name, ranges in _RANGES.items()}
    best = max(ranks, key=ranks.__getitem__)
    if not ranks[best]:
        types = " or ".join(form.mimetype.partition(";")[0] for form in FORMATS.values())
        raise NotAcceptable(
            f"this answer is {types}; add `format=csv` or `format=ndjson` to choose"
        )
    return best


def lines_of(
    ledger: Ledger, form: LineFormat, selection: Selection, as_of: AsOf
) -> Iterator[bytes]:
    """Yield the whole file, a block at a time."""
    count, writer = 0, BlockLines(form)
    yield form.header(EXPORTED)
    for header, columns, rows in ledger.answers.flights(selection, as_of.height):
        count += len(rows)
        yield writer.lines(header, columns, rows)
    yield form.footer(count, as_of, 0)
