"""Sends long answers as streams, of lines that are made while they are sent.

A client sees whether it got everything:

- An answer of less than `LEAST_STREAMED_BYTES` is complete before it is sent. It has a
  Content-Length, and an error before that is a problem with its status.
- A longer answer is sent in chunks (RFC 9112 7.1). If a block turns out to be damaged, the last
  chunk is never sent and the connection ends, so that every HTTP client reports an error. With
  HTTP/1.0, which knows no chunks, the connection is reset. A compressed answer then lacks the end
  of its format.

A stream keeps a thread for as long as its client reads, so there are only so many at a time.
"""

import errno
import logging
import threading
from collections.abc import Iterator
from itertools import chain

from flask import Response

from backend.api.conditions import NO_STORE
from backend.api.encodings import compressed, compressed_pieces, encoding_for
from backend.api.observing import REQUEST_ID
from backend.base.errors import FlightchainError, PlacesTaken
from backend.serving.environs import Environ

LEAST_STREAMED_BYTES = 64 * 1024
RETRY_AFTER_S = 10

_log = logging.getLogger(__name__)


class CutAnswerError(ConnectionResetError):
    """An answer cannot be finished and must not look finished: the connection has to break."""

    def __init__(self) -> None:
        super().__init__(errno.ECONNRESET, "the answer broke off")


class Streams:
    """The streams that go out at a time, of which there are at most `most`."""

    def __init__(self, most: int) -> None:
        self._places = threading.BoundedSemaphore(most)

    def response(
        self,
        environ: Environ,
        lines: Iterator[bytes],
        content_type: str,
        filename: str,
        *,
        is_packed: bool = False,
    ) -> Response:
        """Return the answer that consists of `lines`. filename: under which a browser saves it.

        is_packed: it is compressed already. Raises PlacesTaken while there are too many streams,
        and any error of the first lines.
        """
        encoding = "" if is_packed else encoding_for(environ)
        if environ["REQUEST_METHOD"] == "HEAD":
            return _response(iter(()), encoding, content_type, filename)
        if not self._places.acquire(blocking=False):
            raise PlacesTaken("other exports are running; try again", RETRY_AFTER_S)
        try:
            body = _answer_body(environ, lines)
            response = _response(body, encoding, content_type, filename)
        except BaseException:
            self._places.release()
            raise
        if isinstance(body, bytes):
            self._places.release()
        else:
            response.call_on_close(self._places.release)
        return response


def _answer_body(environ: Environ, lines: Iterator[bytes]) -> Iterator[bytes] | bytes:
    """Return the whole body if it is short; else an iterator, which an error breaks off.

    Raises any error of the first `LEAST_STREAMED_BYTES`.
    """
    first: list[bytes] = []
    size = 0
    for line in lines:
        first.append(line)
        size += len(line)
        if size >= LEAST_STREAMED_BYTES:
            return _cut_on_error(chain(first, lines), environ)
    return b"".join(first)


def _cut_on_error(pieces: Iterator[bytes], environ: Environ) -> Iterator[bytes]:
    try:
        yield from pieces
    except Exception as error:
        unexpected = None if isinstance(error, FlightchainError) else error
        request_id = environ.get(REQUEST_ID)
        _log.error("an export broke off (request %s): %s", request_id, error, exc_info=unexpected)
        raise CutAnswerError from error


def _response(
    body: Iterator[bytes] | bytes, encoding: str, content_type: str, filename: str
) -> Response:
    if encoding:
        body = (
            compressed(encoding, body)
            if isinstance(body, bytes)
            else compressed_pieces(encoding, body)
        )
    response = Response(body, content_type=content_type)
    if encoding:
        response.headers["Content-Encoding"] = encoding
    response.headers["Cache-Control"] = NO_STORE  # unless the caller knows better
    response.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
