"""`GET /flights`: sends flights as CSV or NDJSON, as a stream.

The blocks are read through the ledger's caches, each verified and linked to the one below as in
a scan; memory holds a block or two, whatever is asked for. Ids ascend.

A client sees whether it got everything:

- An answer of up to `LEAST_PIECE_BYTES` is complete before it is sent. It has a Content-Length, and
  an error before that is a problem with its status.
- A longer answer is sent in chunks (RFC 9112 7.1). If a block turns out to be damaged, the last
  chunk is never sent and the connection ends, so that every HTTP client reports an error. With
  HTTP/1.0, which knows no chunks, the connection is reset. A compressed answer then lacks the end
  of its format.
- NDJSON also says in its last line that it is complete.

`X-Flightchain-As-Of: HEIGHT HASH` names the block up to which an export counts, in both formats.

An export keeps a thread for as long as its client reads. At most a quarter of a worker's threads
are lent to exports; the next client is told to come later.
"""

import errno
import logging
import threading
from collections.abc import Iterator
from itertools import chain
from typing import Any

from flask import Response
from werkzeug.exceptions import NotAcceptable

from backend.api.conditions import (
    REVALIDATE,
    SETTLED,
    not_modified,
    quoted,
    tag_of,
    unchanged,
    wants_any,
)
from backend.api.encodings import compressed_pieces, encoding_for, weights
from backend.api.flight_lines import (
    CSV,
    EXPORTED,
    FORMAT,
    FORMATS,
    IN_LINES,
    NDJSON,
    BlockLines,
    LineFormat,
)
from backend.api.observing import REQUEST_ID
from backend.api.operation import READING, Answer, Operation
from backend.api.reading import query_string
from backend.api.routes import Lane, Row
from backend.errors import FlightchainError, TryLater
from backend.ledger import Ledger
from backend.questions.parameters import AS_OF
from backend.questions.selection import PARAMETERS, Selection, selected
from serving.environs import Environ

LEAST_PIECE_BYTES = 64 * 1024
RETRY_AFTER_S = 10

_RANGES = {  # the ranges of Accept, the most specific first
    NDJSON.name: ("application/x-ndjson", "application/ndjson", "application/*", "*/*"),
    CSV.name: ("text/csv", "text/*", "*/*"),
}

EXPORT_FLIGHTS = Operation(
    "export_flights",
    READING,
    "The flights of some days, as NDJSON or CSV",
    {
        200: Answer(
            "Flights, one per line, verified while they are sent; the last line of NDJSON says "
            "that it is complete.",
            IN_LINES,
            headers=("X-Flightchain-As-Of", "Content-Disposition"),
        )
    },
    parameters=(*PARAMETERS.values(), AS_OF, FORMAT),
    errors=(404, 406),
    has_etag=True,
)

_log = logging.getLogger(__name__)


class CutAnswerError(ConnectionResetError):
    """An answer cannot be finished and must not look finished: the connection has to break."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the answer broke off")


def rows(ledger: Ledger) -> list[Row]:
    """The route that exports flights from `ledger`."""
    places = threading.BoundedSemaphore(max(1, ledger.settings.threads // 4))

    def flights(environ: Environ) -> Response:
        """The flights of some days as CSV or NDJSON."""
        query = query_string(environ)
        given = EXPORT_FLIGHTS.given(environ)
        form = FORMATS[FORMAT.find(given) or accepted_format(environ)]
        selection, height = selected(given)
        as_of = ledger.as_of(height)
        tag = tag_of(as_of["tip_hash"], f"flights {form.name}", query)
        cache_control = REVALIDATE if height is None else SETTLED
        response = unchanged(environ, tag, cache_control)
        if response is None and wants_any(environ):
            response = not_modified(tag, "", cache_control)
        if response is None:
            response = streamed(environ, form, selection, as_of)
            response.headers["ETag"] = quoted(tag, response.headers.get("Content-Encoding", ""))
            response.headers["Cache-Control"] = cache_control
        response.headers["Vary"] = "Accept, Accept-Encoding"
        return response

    def streamed(
        environ: Environ, form: LineFormat, selection: Selection, as_of: dict[str, Any]
    ) -> Response:
        if environ["REQUEST_METHOD"] == "HEAD":
            return _response(environ, form, as_of, iter(()))
        if not places.acquire(blocking=False):
            raise TryLater("other exports are running; try again", RETRY_AFTER_S)
        try:
            pieces = _pieces(_lines(ledger, form, selection, as_of))
            body = _answer_body(environ, pieces)
            response = _response(environ, form, as_of, body)
        except BaseException:
            places.release()
            raise
        if isinstance(body, bytes):
            places.release()
        else:
            response.call_on_close(places.release)
        return response

    return [Row("GET", "/flights", EXPORT_FLIGHTS, flights, Lane.EXPORT)]


def accepted_format(environ: Environ) -> str:
    """The format that Accept prefers; NDJSON if it has no preference. Raises NotAcceptable."""
    accepted = weights(environ.get("HTTP_ACCEPT") or "*/*")
    ranks = {
        name: next((accepted[one] for one in ranges if one in accepted), 0.0)
        for name, ranges in _RANGES.items()
    }
    best = max(ranks, key=ranks.__getitem__)
    if not ranks[best]:
        types = " and ".join(form.mimetype.partition(";")[0] for form in FORMATS.values())
        raise NotAcceptable(f"the formats are {types}; `format=csv` or `format=ndjson` names one")
    return best


def _lines(
    ledger: Ledger, form: LineFormat, selection: Selection, as_of: dict[str, Any]
) -> Iterator[bytes]:
    """The whole file, a block at a time."""
    count, writer = 0, BlockLines(form)
    yield form.header(EXPORTED)
    for header, columns, rows in ledger.flights(selection, as_of["height"]):
        count += len(rows)
        yield writer.lines(header, columns, rows)
    yield form.footer(count, as_of)


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines into pieces of at least `LEAST_PIECE_BYTES`; only the last may be shorter."""
    collected: list[bytes] = []
    size = 0
    for line in lines:
        collected.append(line)
        size += len(line)
        if size >= LEAST_PIECE_BYTES:
            yield b"".join(collected)
            collected.clear()
            size = 0
    yield b"".join(collected)


def _answer_body(environ: Environ, pieces: Iterator[bytes]) -> Iterator[bytes] | bytes:
    """The whole body if it is one piece; else an iterator, which breaks the answer on an error.

    Raises any error of the first piece.
    """
    first = next(pieces)
    if len(first) < LEAST_PIECE_BYTES:
        return first
    return _cut_on_error(chain([first], pieces), environ)


def _cut_on_error(pieces: Iterator[bytes], environ: Environ) -> Iterator[bytes]:
    try:
        yield from pieces
    except Exception as error:
        unexpected = None if isinstance(error, FlightchainError) else error
        request_id = environ.get(REQUEST_ID)
        _log.error("an export broke off (request %s): %s", request_id, error, exc_info=unexpected)
        raise CutAnswerError from error


def _response(
    environ: Environ, form: LineFormat, as_of: dict[str, Any], body: Iterator[bytes] | bytes
) -> Response:
    encoding = encoding_for(environ)
    if encoding:
        body = compressed_pieces(encoding, iter((body,)) if isinstance(body, bytes) else body)
    response = Response(body, content_type=form.mimetype)
    if encoding:
        response.headers["Content-Encoding"] = encoding
    response.headers["Content-Disposition"] = f'attachment; filename="flights.{form.name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Flightchain-As-Of"] = f"{as_of['height']} {as_of['tip_hash']}"
    return response
