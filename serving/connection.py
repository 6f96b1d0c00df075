"""A client's HTTP connection: gunicorn's protocol, with deadlines and bounds added.

gunicorn's `ASGIProtocol` parses heads strictly and tells when a connection may be kept. It gives
clients all the time and nearly all the memory they want, though, and it starts the application
before the body has arrived, in a task. `Connection` adds what is missing and nothing else:

- The application is called when head and body have arrived, at once. Until then a request costs a
  buffer. Only an answer that has to wait becomes a task.
- A client has `HEAD_WITHIN_S` to send a head and `SEND_WITHIN_S` to read an answer. A body or a
  long answer gives it as much more time as `BYTES_PER_S` allows. Dribbling gains no time.
- A head has at most `MAX_HEAD_BYTES`, a body at most what the application takes. The body's length
  is one number, never chunks, so that no other server can see its end at another place.
- What HTTP itself refuses is answered with a problem (RFC 9457), like every other error.
- A connection that ends is first closed for writing only, until the client has read everything
  (RFC 9112 section 9.6). If the client goes on sending, the worker soon reads no more of it, which
  makes the client wait; a reset would let it connect and send again at once. A client that has
  closed its own half still gets its answers.

It relies on these parts of release 27.0.1, which `tests/serving/test_pinned_gunicorn.py` checks:
the callbacks `_on_headers_complete` and `_on_message_complete` of the parser; its `_buffer`,
`is_complete`, `is_chunked`, `content_length`, `remaining` and `reset`; `_current_request` and
`_body_receiver`, made when a head is complete; `_handle_connection`, the task of a connection,
which has nothing to do here; `_task`, cancelled when a client is gone; `_will_close`, which only
looks; and `_close_transport`.
"""

import asyncio
import struct
import time
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, Protocol

from gunicorn.asgi import parser, protocol
from gunicorn.http import errors

from serving.eager_tasks import begun
from serving.sending import Sending
from serving.visitors import without_secrets

MAX_HEAD_BYTES = 32 * 1024
MAX_LENGTH_DIGITS = 15
HEAD_WITHIN_S = 10.0
FIRST_WITHIN_S = 0.5  # a stop lets a client that has just connected begin its first request
SEND_WITHIN_S = 30.0
BYTES_PER_S = 8 * 1024  # adds time to the two above; slower clients are given up
LINGER_S = 2.0
LEAVE_WITHIN_S = 0.5  # at a stop, for a client that is owed nothing
IGNORED_BYTES = 64 * 1024  # are read while a connection ends; more if a body was refused
MAX_IGNORED_BODY_BYTES = 64 * 2**20
NEVER = float("inf")

CONNECTION = "flightchain.connection"  # in the ASGI scope: the `Connection`

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

# An error of the parser -> status, and a sentence that ends with the error's own text.
_REFUSALS: tuple[tuple[type[Exception], int, str], ...] = (
    (parser.LimitRequestLine, 414, "the request line is too long"),
    (parser.LimitRequestHeaders, 431, "the head of the request is too large"),
    (parser.UnsupportedTransferCoding, 501, "this Transfer-Encoding is not supported"),
    (parser.InvalidRequestMethod, 400, "this is not an HTTP method"),
    (parser.InvalidHTTPVersion, 400, "this version of HTTP is unknown"),
    (parser.InvalidHeaderName, 400, "a header has a name that HTTP does not allow"),
    (parser.ParseError, 400, "this is not an HTTP request"),
    (errors.ParseException, 400, "this is not an HTTP request"),
)
_PARSE_ERRORS = tuple(kind for kind, _, _ in _REFUSALS)


class Refused(Exception):
    """A request that gets no further than its connection. more: members of the problem.

    follows_bytes: how much more its client will send before it looks for an answer.
    """

    def __init__(self, status: int, detail: str, follows_bytes: int = 0, **more: object) -> None:
        super().__init__(detail)
        self.status = status
        self.follows_bytes = follows_bytes
        self.more = more


class Host(Protocol):
    """The worker that a connection belongs to. max_body_bytes: the most a request may have."""

    loop: Any
    alive: bool
    max_body_bytes: int

    def joined(self, connection: "Connection") -> None:
        """Count a connection that has begun."""

    def ends(self, connection: "Connection") -> None:
        """Count a connection no more, because it has been answered and only has to end."""

    def left(self, connection: "Connection") -> None:
        """Count a connection that has ended."""

    def has_room_for(self, connection: "Connection") -> bool:
        """Whether a client may send more, considering what all clients have sent in part."""

    def limit_unsent(self) -> None:
        """Give up clients that do not read, while too many bytes wait to be sent."""

    def problem(self, connection: "Connection", status: int, detail: str, **more: object) -> bytes:
        """A complete answer, after which the connection ends."""


_Protocol: Any = protocol.ASGIProtocol  # whose types lack most of what is used here


class Connection(_Protocol):  # type: ignore[misc]
    """One client's connection.

    received_bytes: size of the part of a request that has come so far. deadline: when the worker
    gives the connection up, in monotonic seconds; NEVER while a request is in hand. is_ending: it
    only waits until the client has closed.
    """

    _closed: bool
    _task: asyncio.Task[None] | None
    _current_request: Any
    _body_receiver: Any

    def __init__(self, worker: Host) -> None:
        super().__init__(worker)
        self.received_bytes = 0
        self.deadline = NEVER
        self.is_ending = False
        self._ignores_bytes = IGNORED_BYTES  # how many more are read while it is ending
        self._has_said_all = False

    # --- receiving ---------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Begin; the client has time to send a head."""
        super().connection_made(transport)
        server, client = map(transport.get_extra_info, ("sockname", "peername"))
        self._server, self._client = server and server[:2], client and client[:2]
        now = time.monotonic()
        self.deadline, self._first_until = now + HEAD_WITHIN_S, now + FIRST_WITHIN_S
        self.worker.joined(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client. Those that come while a request is in hand wait."""
        if self.is_ending:
            self._ignores_bytes -= len(data)
            if self._ignores_bytes < 0:
                self._pause_reading()  # a client that only wants to send has to wait
            return
        if self._callback_parser.is_complete:
            self._callback_parser.feed(data)
            self._pause_reading()
            if not self.worker.has_room_for(self):
                self.transport.abort()
            return
        if not self.received_bytes:
            self.deadline = time.monotonic() + HEAD_WITHIN_S
        self._parse(data)
        if self._callback_parser.is_complete:
            self._task = begun(self._serve(), self.worker.loop)

    def _parse(self, data: bytes) -> None:
        """Parse bytes of one request; refuse what HTTP refuses."""
        if not self.received_bytes:
            data = data.lstrip(b"\r\n")  # RFC 9112 section 2.2
        if not data:
            return
        self.received_bytes += len(data)
        try:
            self._callback_parser.feed(data)
            self._require_bounds()
        except Refused as refused:
            follows_bytes = min(refused.follows_bytes, MAX_IGNORED_BODY_BYTES)
            self._ignores_bytes = max(IGNORED_BYTES, follows_bytes)
            self.refuse(refused.status, str(refused), **refused.more)
        except _PARSE_ERRORS as error:
            status, what = next((s, w) for kind, s, w in _REFUSALS if isinstance(error, kind))
            self.refuse(status, f"{what}: {without_secrets(str(error))}")

    def _require_bounds(self) -> None:
        """Raise Refused if the part of a request that has come is too large."""
        if self._callback_parser.is_complete:
            return
        if self._current_request is None:
            if self.received_bytes > MAX_HEAD_BYTES:
                raise _head_too_large()
        elif self._body_receiver.expect_continue:
            self._body_receiver.expect_continue = False
            self._safe_write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self.worker.has_room_for(self):
            raise Refused(503, "clients are sending too much at the same time; try later")

    def _on_headers_complete(self) -> bool:
        head = self._callback_parser
        if self.received_bytes - len(head._buffer) > MAX_HEAD_BYTES:
            raise _head_too_large()
        length = _required_length(head, self.worker.max_body_bytes)
        self.deadline = time.monotonic() + HEAD_WITHIN_S + length / BYTES_PER_S
        is_without_body: bool = super()._on_headers_complete()
        return is_without_body

    def _on_message_complete(self) -> None:
        super()._on_message_complete()
        self.received_bytes = 0
        self.deadline = NEVER

    async def _handle_connection(self) -> None:
        """Leave gunicorn's own task: `data_received` begins each answer."""

    async def _serve(self) -> None:
        """Answer the request that is here, and those that have come behind it; then wait or end."""
        try:
            while await self._is_answered() and self.worker.alive:
                if self._callback_parser._buffer:  # the next request; others have their turn first
                    await asyncio.sleep(0)
                if not self._turn_to_next():
                    return
        except Exception:
            self.log.exception("a connection cannot go on")
        self._close_transport()

    async def _is_answered(self) -> bool:
        """Have the application answer. Returns whether the connection can be kept after that."""
        sending = Sending(self, self._current_request)
        try:
            await self.app(self._scope(), self._body_receiver.receive, sending.send)
        except Exception:
            self.log.exception("a request could not be answered")
            if not sending.has_begun:
                self._safe_write(self.worker.problem(self, 500, "Internal Server Error"))
            return False
        return sending.is_kept

    def _turn_to_next(self) -> bool:
        """Turn to the next request. Returns whether all of it has come already."""
        parsed = self._callback_parser
        data = parsed.remaining()
        parsed.reset()
        self._current_request = self._body_receiver = None
        self._resume_reading()
        self._parse(data)
        if self._current_request is None and not self.is_ending:
            self._wait_for_head()
        return bool(parsed.is_complete)

    def _scope(self) -> dict[str, Any]:
        """The ASGI scope of the request that is here, as far as the front reads it."""
        request = self._current_request
        return {
            "type": "http",
            "http_version": "1.1" if request.version >= (1, 1) else "1.0",
            "method": request.method,
            "scheme": request.scheme,
            "raw_path": request.raw_path,
            "query_string": request.query,
            "headers": request.headers_bytes,
            "server": self._server,
            "client": self._client,
            CONNECTION: self,
        }

    def held_bytes(self) -> int:
        """How many bytes of incomplete and of waiting requests are here."""
        parsed = self._callback_parser
        return self.received_bytes + (len(parsed._buffer) if parsed.is_complete else 0)

    # --- answering ---------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Give the client time to read the bytes that wait for it."""
        super().pause_writing()
        self.deadline = time.monotonic() + SEND_WITHIN_S + self.unsent_bytes() / BYTES_PER_S
        self.worker.limit_unsent()

    def resume_writing(self) -> None:
        """Go on: the client has read nearly everything."""
        super().resume_writing()
        self.deadline = time.monotonic() + LINGER_S if self.is_ending else NEVER

    def unsent_bytes(self) -> int:
        """How many bytes the client has not taken yet."""
        size: int = self.transport.get_write_buffer_size()
        return size

    def refuse(self, status: int, detail: str, **more: object) -> None:
        """Answer an incomplete request with a problem, and end."""
        self._safe_write(self.worker.problem(self, status, detail, **more))
        self._close_transport()

    # --- ending ------------------------------------------------------------------------------

    def _wait_for_head(self) -> None:
        """Wait for the next request, which may have come in part; or end, if none can come."""
        within_s = HEAD_WITHIN_S if self.received_bytes else self._keepalive
        self.deadline = time.monotonic() + within_s
        if self._has_said_all:
            self._close_transport()

    def end_if_idle(self) -> None:
        """End, unless the client has sent a part of a request, or has only just connected."""
        now = time.monotonic()
        is_idle = not self._callback_parser.is_complete and not self.received_bytes
        if is_idle and not self.is_ending and now >= self._first_until:
            self._close_transport()
            if not self.unsent_bytes():
                self.deadline = now + LEAVE_WITHIN_S

    def eof_received(self) -> bool:
        """The client sends nothing more. Returns whether it still gets answers."""
        self._has_said_all = True
        return not self.is_ending and bool(self._callback_parser.is_complete)

    def give_up(self) -> None:
        """End because the deadline has come; answer 408 if a part of a request has come."""
        if self.received_bytes and not self.is_ending and not self._flow_control.write_paused:
            self.refuse(408, "the request did not arrive in time")
        else:
            self.transport.abort()

    def reset(self) -> None:
        """Break the connection, so that the client cannot take a part for the whole answer."""
        raw = self.transport.get_extra_info("socket")
        raw.setsockopt(SOL_SOCKET, SO_LINGER, _RESET_ON_CLOSE)
        self._closed = self.is_ending = True  # so that nothing else ends it more gently
        self.transport.abort()

    def _close_transport(self) -> None:
        """Tell the client that nothing follows, and wait until it has closed."""
        if self._closed:
            return
        self._closed = self.is_ending = True
        self.worker.ends(self)
        if not self._flow_control.write_paused:
            self.deadline = time.monotonic() + LINGER_S
        if self._has_said_all:
            self.transport.close()
            return
        self._resume_reading()
        try:
            self.transport.write_eof()
        except OSError:  # the client has closed already
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the worker."""
        super().connection_lost(exc)
        self.worker.left(self)


def _required_length(head: Any, max_body_bytes: int) -> int:
    """The length of the body in bytes. Raises Refused unless it is stated and allowed."""
    if head.is_chunked:
        reason = "body: must be sent with a Content-Length, not in chunks"
        raise Refused(411, reason, field="body")
    for name, value in head.headers:
        if name == b"content-length" and len(value) > MAX_LENGTH_DIGITS:
            reason = f"Content-Length: must be a number of at most {MAX_LENGTH_DIGITS} digits"
            raise Refused(400, reason, field="Content-Length")
        if name == b"expect" and value.lower() != b"100-continue":
            reason = "Expect: only 100-continue is supported"
            raise Refused(417, reason, field="Expect")
    length: int = head.content_length or 0
    if length > max_body_bytes:
        reason = f"body: has {length} bytes; at most {max_body_bytes} are accepted"
        raise Refused(413, reason, length, field="body")
    return length


def _head_too_large() -> Refused:
    return Refused(431, f"the head of the request exceeds {MAX_HEAD_BYTES} bytes")
