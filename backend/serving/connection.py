"""A client's HTTP connection: uvicorn's protocol for httptools, with deadlines and bounds added.

uvicorn lets clients take all the time and nearly all the memory they want. `Connection` adds:

- A client has `HEAD_WITHIN_S` to send a head, counted from its first byte, `BODY_WITHIN_S` to send
  a body, and `READ_WITHIN_S` to read an answer. Bodies and long answers give it as much more time
  as `BYTES_PER_S` allows.
- A head has at most `MAX_HEAD_BYTES` and `MAX_FIELDS` of `MAX_FIELD_BYTES`, a body at most what the
  application takes. Its length is one number, never chunks, so that no other server can see its end
  elsewhere.
- One request is parsed at a time. What comes behind it waits, unread if it is much, until the
  answer is complete and its client has taken nearly all of it.
- What HTTP itself refuses is answered with a problem (RFC 9457), like every other error.
- A connection that ends is closed for writing first, until the client has read everything (RFC
  9112 section 9.6); a client that goes on sending has to wait. A client that has closed its own
  half still gets its answers. One that is gone has its request cancelled.

It relies on these parts of uvicorn 0.54, which `tests/serving/test_uvicorn.py` checks: the parser
calls `on_message_begin`, `on_url`, `on_header`, `on_headers_complete`, `on_body` and
`on_message_complete`; `on_headers_complete` makes `cycle` and hands it to `_start_asgi_task`, once
the one before is complete; a cycle calls the `on_response_complete` of its connection at the end,
after it has closed the transport unless `keep_alive`; it writes nothing while `disconnected`; its
`chunked_encoding` and `expected_content_length` say how a body is framed.
"""

import asyncio
import struct
import time
from functools import partial
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from backend.serving.client_bounds import MAX_BUFFERED_BYTES, Bounds
from backend.serving.environs import CLOSE, CONNECTION

MAX_HEAD_BYTES = 32 * 1024
MAX_LINE_BYTES = MAX_FIELD_BYTES = 4096
MAX_FIELDS = 50
MAX_LENGTH_DIGITS = 15
HEAD_WITHIN_S = 10.0
BODY_WITHIN_S = 10.0
READ_WITHIN_S = 30.0
BYTES_PER_S = 8 * 1024  # adds time to the two above; slower clients are given up
FIRST_WITHIN_S = 0.5  # a stop lets a client that has just connected begin its first request
LINGER_S = 2.0
LEAVE_WITHIN_S = 0.5  # at a stop, for a client that is owed nothing
IGNORED_BYTES = 64 * 1024  # are read while a connection ends; more if a body was refused
MAX_IGNORED_BODY_BYTES = 64 * 2**20
NEVER = float("inf")

HEAD, BODY, ANSWER = range(3)  # what a connection waits for

_END = b"\r\n\r\n"
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_ALLOWED = bytes([9, *range(32, 127), *range(128, 256)])  # in a field (RFC 9110 section 5.5)
_UNFRAMED = 2**62  # bytes of a body that ends with its connection
_BOUNDING = frozenset({b"content-length", b"transfer-encoding", b"expect"})
_KNOWN_ERRORS = (
    (httptools.HttpParserInvalidMethodError, "this is not an HTTP method"),
    (httptools.HttpParserInvalidURLError, "this is not an address"),
    (httptools.HttpParserError, "this is not an HTTP request"),
)


class Refused(Exception):
    """A request that gets no further than its connection. more: members of the problem."""

    def __init__(self, status: int, detail: str, **more: object) -> None:
        super().__init__(detail)
        self.status = status
        self.more = more


class Connection(HttpToolsProtocol):
    """One client's connection.

    waits_for: HEAD, BODY, or ANSWER while a request is in hand. since: when it began to wait for a
    head. received_bytes: of a request until it is answered. kept_bytes: in memory for an answer
    that its client does not read; a piece stays whole until its last byte is sent. deadline: when
    the connection is given up, in monotonic seconds. is_ending: it only waits until the client has
    closed.
    """

    server_state: Bounds
    _task: asyncio.Task[None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waits_for = HEAD
        self.since, self.deadline = 0.0, NEVER
        self.received_bytes = self.kept_bytes = self._body_bytes = 0
        self.is_ending = self._has_said_all = self._is_kept_on_disk = False
        self._behind = self._last = b""  # behind the request in hand; the last bytes of a head

    # --- receiving ---------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Begin; the client has time to send a head."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(MAX_BUFFERED_BYTES)
        self.since = time.monotonic()
        self.deadline = self.since + HEAD_WITHIN_S
        self._first_until = self.since + FIRST_WITHIN_S
        self.server_state.admit(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes from the client. Those that come while a request is in hand wait."""
        if self.is_ending:
            self._ignored_bytes -= len(data)
            if self._ignored_bytes < 0:
                self.flow.pause_reading()
        elif self.waits_for == ANSWER:
            self._wait_behind(self._behind + data)
        else:
            self._parse(data)

    def _wait_behind(self, data: bytes) -> None:
        self._behind = data
        self.flow.pause_reading()
        if not self.server_state.has_room_for(self):
            self.transport.abort()

    def _parse(self, data: bytes) -> None:
        """Parse bytes until a request is complete; refuse what HTTP refuses."""
        if not self.received_bytes:
            self.deadline = time.monotonic() + HEAD_WITHIN_S
        try:
            while data and self.waits_for != ANSWER:
                end = self._end_of_part(data)
                self.received_bytes += end
                self._feed(data if end == len(data) else data[:end])
                data = data[end:]
        except Refused as refused:
            self.refuse(refused.status, str(refused), **refused.more)
        else:
            if data:
                self._wait_behind(data)

    def _end_of_part(self, data: bytes) -> int:
        """Return how many bytes of `data` belong to the head or the body that is not complete."""
        if self.waits_for == BODY:
            return min(len(data), self._body_bytes)
        searched = self._last + data
        end = searched.find(_END)
        if end >= 0:
            end += len(_END) - len(self._last)
            self._last = b""
            return end
        self._last = searched[-3:]
        return len(data)

    def _feed(self, data: bytes) -> None:
        """Let the parser have a part of a message. Raises Refused."""
        try:
            if self.waits_for == BODY and self.parser.should_upgrade():
                self.on_body(data)  # the parser leaves out the body of such a request
                self.on_message_complete()
            else:
                self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # an offer, which nobody takes
            pass
        except httptools.HttpParserError as error:
            if isinstance(error.__context__, Refused):
                raise error.__context__ from None
            what = next(what for kind, what in _KNOWN_ERRORS if isinstance(error, kind))
            raise Refused(400, what) from None
        if self.waits_for == HEAD:
            self._require_small_head()
        if self.waits_for != ANSWER and not self.server_state.has_room_for(self):
            raise Refused(503, "clients are sending too much at the same time; try later")

    def _require_small_head(self) -> None:
        if self.received_bytes > MAX_HEAD_BYTES:
            raise Refused(431, f"the head of the request exceeds {MAX_HEAD_BYTES} bytes")

    def on_url(self, url: bytes) -> None:
        """Take a part of the address. Raises Refused."""
        super().on_url(url)
        if len(self.url) > MAX_LINE_BYTES:
            raise Refused(414, f"the address exceeds {MAX_LINE_BYTES} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field. Raises Refused."""
        if len(self.headers) == MAX_FIELDS or len(name) + len(value) > MAX_FIELD_BYTES:
            allowed = f"at most {MAX_FIELDS} fields of {MAX_FIELD_BYTES} bytes are allowed"
            raise Refused(431, f"the head of the request is too large: {allowed}")
        name = name.lower()
        if name in _BOUNDING:
            self._note_body(name, value)
        self.headers.append((name, value))

    def _note_body(self, name: bytes, value: bytes) -> None:
        if name == b"transfer-encoding":
            reason = "body: must be sent with a Content-Length, not in chunks"
            raise Refused(411, reason, field="body")
        if name == b"expect":
            if value.lower() != b"100-continue":
                raise Refused(417, "Expect: only 100-continue is supported", field="Expect")
            self.expect_100_continue = True
            return
        digits = value.strip()
        if not digits.isdigit() or len(digits) > MAX_LENGTH_DIGITS:
            reason = f"Content-Length: must be a number of at most {MAX_LENGTH_DIGITS} digits"
            raise Refused(400, reason, field="Content-Length")
        self._body_bytes = int(digits)

    def on_headers_complete(self) -> None:
        """Begin the request, whose body may follow. Raises Refused."""
        self._require_small_head()
        length, version = self._body_bytes, self.parser.get_http_version()
        most_bytes = self.server_state.site.max_body_bytes
        if version not in {"1.0", "1.1"}:
            raise Refused(400, "this version of HTTP is unknown")
        if length > most_bytes:
            reason = f"body: has {length} bytes; at most {most_bytes} are accepted"
            raise Refused(413, reason, field="body")
        self._is_kept_on_disk = length > self.server_state.site.max_body_bytes_in_memory
        if not self.url.startswith(b"/"):
            self._take_host_of_address()
        self.expect_100_continue &= version == "1.1"
        self.waits_for, self.deadline = BODY, time.monotonic() + BODY_WITHIN_S
        scope: Any = self.scope
        scope[CONNECTION] = self
        super().on_headers_complete()

    def _take_host_of_address(self) -> None:
        """Let the host in an absolute address count, and no Host beside it (RFC 9112 3.2.2)."""
        parsed: Any = httptools.parse_url(self.url)
        if parsed.host is None:
            return
        host = b"[%b]" % parsed.host if b":" in parsed.host else parsed.host
        host += b":%d" % parsed.port if parsed.port else b""
        self.headers[:] = [field for field in self.headers if field[0] != b"host"]
        self.headers.append((b"host", host))
        if not parsed.path:
            self.url = b"/" + (b"?" + parsed.query if parsed.query else b"")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.scope["http_version"] == "1.0":
            vars(cycle)["send"] = partial(_send_without_chunks, cycle, cycle.send)
        self._task = self.loop.create_task(cycle.run_asgi(app))
        self._task.add_done_callback(self.tasks.discard)
        self.tasks.add(self._task)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, which gives the client more time."""
        self._body_bytes -= len(body)
        self.deadline += len(body) / BYTES_PER_S
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Let the request be answered, once its body is there."""
        if self._body_bytes:
            return
        self.cycle.waiting_for_100_continue = False  # RFC 9110 section 10.1.1
        self.waits_for, self.deadline = ANSWER, NEVER
        super().on_message_complete()

    def held_bytes(self) -> int:
        """Return how many bytes of requests that are not answered yet are in memory."""
        received_bytes = self.received_bytes
        if self.waits_for != HEAD and self._is_kept_on_disk:
            received_bytes = len(self.cycle.body)  # the front has written the others to a file
        return received_bytes + len(self._behind)

    # --- answering ---------------------------------------------------------------------------

    def send_whole(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send a whole answer, whose headers tell its length, in one piece.

        uvicorn looks at each header twice, which takes as long as a kept answer. Raises ValueError
        for a header that would not end where its line does.
        """
        cycle = self.cycle
        if cycle is None or cycle.disconnected:
            return
        fields = "".join([f"{name}: {value}\r\n" for name, value in headers]).encode("latin-1")
        if fields.translate(None, _ALLOWED) != b"\r\n" * len(headers):
            raise ValueError(f"a header of this answer is not allowed in HTTP: {fields!r}")
        if CLOSE in headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive or self.waits_for == BODY:
            fields += b"Connection: close\r\n"
        if cycle.scope["method"] == "HEAD":
            body = b""
        cycle.response_started = cycle.response_complete = True
        for name, value in cycle.default_headers:
            fields += b"%b: %b\r\n" % (name, value)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], fields, body))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_response_complete(self) -> None:
        """Turn to the next request, or end if the answer came before all of the request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.waits_for == BODY:
            self._end()
        elif not self.flow.write_paused:
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        """Wait for the next request; if it has come in part, after others have had their turn."""
        self.waits_for, self.since = HEAD, time.monotonic()
        self.received_bytes = 0
        self.deadline = self.since + self.timeout_keep_alive
        if self._behind:
            self.loop.call_soon(self._parse_behind)
        elif self._has_said_all:
            self.transport.close()
        else:
            self.flow.resume_reading()

    def _parse_behind(self) -> None:
        data, self._behind = self._behind, b""
        if self.transport.is_closing() or self.is_ending:
            return
        self._parse(data)
        if self.waits_for != ANSWER:
            self.flow.resume_reading()

    def pause_writing(self) -> None:
        """Give the client time to read the bytes that wait for it."""
        super().pause_writing()
        self.kept_bytes = self.unsent_bytes()
        self.deadline = time.monotonic() + READ_WITHIN_S + self.kept_bytes / BYTES_PER_S
        self.server_state.limit_unsent(self)

    def resume_writing(self) -> None:
        """Go on: the client has read nearly everything."""
        super().resume_writing()
        self.server_state.slow_readers.discard(self)
        self.deadline = time.monotonic() + LINGER_S if self.is_ending else NEVER
        if self.waits_for == ANSWER and self.cycle.response_complete and not self.is_ending:
            self._wait_for_head()

    def unsent_bytes(self) -> int:
        """Return how many bytes the client has not taken yet."""
        return self.transport.get_write_buffer_size()

    def refuse(self, status: int, detail: str, **more: object) -> None:
        """Answer an incomplete request with a problem, and end."""
        self._cancel()
        self.transport.write(self.server_state.problem(self, status, detail, **more))
        self._end()

    # --- ending ------------------------------------------------------------------------------

    def _cancel(self) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def _end(self) -> None:
        """Tell the client that nothing follows, and wait until it has closed."""
        if self.is_ending or self.transport.is_closing():
            return
        self.is_ending = True
        # How many more bytes are read:
        self._ignored_bytes = max(IGNORED_BYTES, min(self._body_bytes, MAX_IGNORED_BODY_BYTES))
        if not self.flow.write_paused:
            self.deadline = time.monotonic() + LINGER_S
        if self._has_said_all:
            self.transport.close()
            return
        self.flow.resume_reading()
        try:
            self.transport.write_eof()
        except OSError:  # the client has closed already
            self.transport.abort()

    def shutdown(self) -> None:
        """End if there is no request; a client that has only just connected may still send one."""
        now = time.monotonic()
        if self.waits_for == ANSWER and self.cycle is not None:
            self.cycle.keep_alive = False
        elif not self.received_bytes and not self.is_ending and now >= self._first_until:
            self._end()
            if not self.unsent_bytes():
                self.deadline = now + LEAVE_WITHIN_S

    def eof_received(self) -> bool:  # type: ignore[override]
        """Note that the client sends nothing more. Return whether it still gets answers."""
        self._has_said_all = True
        return not self.is_ending and self.waits_for == ANSWER

    def is_idle(self) -> bool:
        """Return whether no request of it is in hand, so that it may end for a newer connection."""
        return self.waits_for != ANSWER or self.is_ending

    def give_up_if_late(self, now: float) -> None:
        """End if the deadline has come; answer 408 if a part of a request has come."""
        if self.deadline == NEVER and self.transport.is_closing():
            self.deadline = now + READ_WITHIN_S  # for what it has still to read
        if now < self.deadline:
            return
        is_in_part = self.received_bytes > 0 and self.waits_for != ANSWER
        if is_in_part and not (self.is_ending or self.flow.write_paused):
            self.refuse(408, "the request did not arrive in time")
        else:
            self.transport.abort()

    def break_off(self) -> None:
        """End in the midst of an answer, so that no client takes a part for the whole of it."""
        if self.scope["http_version"] == "1.0":  # where the end of the connection is no sign
            raw = self.transport.get_extra_info("socket")
            raw.setsockopt(SOL_SOCKET, SO_LINGER, _RESET_ON_CLOSE)
            self.transport.abort()
        self.cycle.disconnected = True
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave, and drop what is not answered."""
        self._cancel()
        super().connection_lost(exc)
        self.server_state.left(self)
        self._behind = b""
        self.scope = self.cycle = None  # type: ignore[assignment]  # no reference cycle is left


async def _send_without_chunks(cycle: RequestResponseCycle, send: Any, message: Any) -> None:
    """Send to a client of HTTP/1.0: a body without a length ends with its connection."""
    if message["type"] == "http.response.start":
        if b"content-length" not in {name.lower() for name, _ in message["headers"]}:
            cycle.chunked_encoding, cycle.expected_content_length = False, _UNFRAMED
    elif not message.get("more_body") and cycle.expected_content_length > _UNFRAMED // 2:
        cycle.expected_content_length = len(message["body"])
    await send(message)
