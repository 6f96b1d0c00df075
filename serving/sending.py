"""Sends the answer to one request over an HTTP/1 connection, as the front hands it over.

gunicorn's own `send` checks and copies header by header, which takes longer than a kept answer. So
a head is checked as a whole here, and goes out in one piece with the beginning of the body.

A body is framed by its Content-Length, else by chunks, else by the end of the connection, because
HTTP/1.0 knows no chunks. An answer that breaks off never looks whole: the connection ends before
its last chunk, or before its length is reached (RFC 9112 section 8).
"""

import re
import time
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any

JOINED_BYTES = 64 * 1024  # a larger piece of a body is not copied to stand behind the head

_ALLOWED = bytes([9, *range(32, 127), *range(128, 256)])  # in a header (RFC 9110 section 5.5)
_LENGTH = re.compile(rb"(?:^|\n)content-length: *([0-9]+)", re.IGNORECASE)

Headers = Sequence[tuple[str, str]]


class Sending:
    """The answer to a request. `send` is that of ASGI, but that the headers are text.

    has_begun: whether there is a head. is_kept: whether the answer is whole and the connection may
    take another request.
    """

    _left: int | None  # bytes of the body that follow; None if that is not known

    def __init__(self, connection: Any, request: Any) -> None:
        """connection: a `Connection`. request: what gunicorn has made of the request's head."""
        self._connection = connection
        self._request = request
        self.has_begun = self.is_kept = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send the head or a piece of the body, but nothing to a client that is gone."""
        connection = self._connection
        if connection._closed:
            return
        if message["type"] == "http.response.start":
            self._head = self._begun(message["status"], message["headers"])
            self.has_begun = True
            return
        is_last = not message.get("more_body")
        body = self._framed(message["body"], is_last=is_last)
        head, self._head = self._head, b""
        if len(body) > JOINED_BYTES:
            connection._safe_write(head)
            head = b""
        connection._safe_write(head + body)
        self.is_kept = is_last and self._may_keep and not self._left
        if connection._flow_control.write_paused:
            await connection._flow_control.drain()

    def _begun(self, status: int, headers: Headers) -> bytes:
        """The head. Raises ValueError for a header that would not end where its line does."""
        request, connection = self._request, self._connection
        fields = "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1")
        if fields.translate(None, _ALLOWED) != b"\r\n" * len(headers):
            raise ValueError(f"a header of this answer is not allowed in HTTP: {fields!r}")
        is_new = request.version >= (1, 1)
        closes = connection._will_close(request, False)
        self._left, self._is_chunked = None, False
        if request.method == "HEAD" or status in {204, 304}:
            self._left = 0
        elif length := _LENGTH.search(fields):
            self._left = int(length[1])
        elif is_new:
            self._is_chunked = True
            fields += b"Transfer-Encoding: chunked\r\n"
        else:
            closes = True
        self._may_keep = not closes
        if closes:
            fields += b"Connection: close\r\n"
        elif not is_new:  # has to be told that its connection is kept
            fields += b"Connection: keep-alive\r\n"
        return b"%b%b%b\r\n" % (_status_line(status, is_new), fields, _stamp(int(time.time())))

    def _framed(self, body: bytes, *, is_last: bool) -> bytes:
        """A piece of the body as it goes out; never more in all than its length."""
        if self._is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            return chunk + b"0\r\n\r\n" if is_last else chunk
        if self._left is not None:
            body = body[: self._left]
            self._left -= len(body)
        return body


@lru_cache(maxsize=64)
def _status_line(status: int, is_new: bool) -> bytes:
    return f"HTTP/1.{int(is_new)} {status} {HTTPStatus(status).phrase}\r\n".encode()


@lru_cache(maxsize=1)
def _stamp(unix_s: int) -> bytes:
    """The last headers of all answers of this second."""
    return f"Server: gunicorn/asgi\r\nDate: {formatdate(unix_s, usegmt=True)}\r\n".encode()
