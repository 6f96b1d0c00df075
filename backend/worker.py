"""The gunicorn worker: a loop receives every request whole, and answers the quick ones itself.

gunicorn's threaded worker hands every request to a thread and back. With Python's one interpreter
lock that costs more than a quick answer itself, and a client that is slow to send keeps a thread.
Here the loop (the main thread) owns all connections:

- A request goes on only when its head and body are there. Until then it costs a buffer and no
  thread, so neither silent nor dribbling clients keep anybody from asking.
- A quick one (`is_quick` of the application decides, by its first line) is answered in the loop:
  no other thread is awake then, and head and body of the answer leave in one packet.
- Workers take turns with new connections: one that has more than another leaves them to it for a
  moment. Otherwise few clients can all end up with the same worker, while the others idle.
- Everything else, whatever might wait for a disk, a block or a scan, goes to the threads.

What HTTP itself refuses is answered with a problem, too, like every other error.
"""

import errno
import re
import selectors
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from multiprocessing.sharedctypes import RawArray
from socket import SHUT_WR, socket
from typing import Any

from gunicorn.http import errors
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import TConn, ThreadWorker

from backend.api import METRICS, QUICK
from backend.api.metrics import Metrics
from backend.api.problems import MIMETYPE, problem_body

RECEIVE_BYTES = 16 * 1024  # at least; of a body as much as is missing, up to
RECEIVE_BODY_BYTES = 2**20
MAX_HEAD_BYTES = 32 * 1024
MAX_BUFFERED_BYTES = 64 * 2**20  # of requests that are not whole, in one worker
HEAD_WITHIN_S = 10.0
BODY_BYTES_PER_S = 8 * 1024  # slower clients are given up
LINGER_S = 2.0
SEND_WITHIN_S = 30.0
LEAVE_TO_OTHERS_S = 0.002
MOST_WORKERS = 128  # live ones and those that have just died
SWITCH_INTERVAL_S = 0.0005  # how long a thread may keep the loop waiting for the interpreter

_HEAD_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect[ \t]*:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (errors.LimitRequestLine, 414),
    (errors.LimitRequestHeaders, 431),
    (errors.ExpectationFailed, 417),
    (errors.UnsupportedTransferCoding, 501),
    (errors.ParseException, 400),
)


class _RefusedError(Exception):
    """A request that gets no further than the loop."""

    def __init__(self, status: int, detail: str, **more: object) -> None:
        super().__init__(detail)
        self.status = status
        self.more = more


class _Outgoing:
    """Takes an answer as a socket would, to be sent by the loop in one piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.sendall = self.pieces.append

    def setblocking(self, flag: bool) -> None:
        """Never blocks."""

    def taken(self) -> bytes:
        """Everything since the last time."""
        data = b"".join(self.pieces)
        self.pieces.clear()
        return data


class _Connection(TConn):
    """A client's connection.

    received: bytes that no request has taken yet. wanted: length of the next request, 0 while its
    head is incomplete. unsent: of the last answer. deadline: when the loop gives up, monotonic
    seconds. is_ending: only waits until the client has closed.
    """

    def __init__(self, cfg: Any, raw: socket, client: Any, server: Any) -> None:
        super().__init__(cfg, raw, client, server)
        self.raw = raw
        self.sock: Any = raw  # where the answer goes: `raw`, or `outgoing`
        self.outgoing = _Outgoing()
        self.parser: Any = RequestParser(cfg, (), client)  # is given whole requests, never reads
        self.initialized = True
        self.received = bytearray()
        self.wanted = 0
        self.unsent = b""
        self.deadline = 0.0
        self.keeps = True
        self.is_ending = False

    def is_whole(self, max_body_bytes: int) -> bool:
        """Whether the next request has arrived. Raises _RefusedError if it never will."""
        if not self.wanted:
            self._look_for_head(max_body_bytes)
        return 0 < self.wanted <= len(self.received)

    def _look_for_head(self, max_body_bytes: int) -> None:
        end = self.received.find(_HEAD_END)
        if end < 0:
            if len(self.received) > MAX_HEAD_BYTES:
                raise _RefusedError(431, f"the head of the request exceeds {MAX_HEAD_BYTES} bytes")
            return
        head = self.received[: end + len(_HEAD_END)]
        if _CHUNKED.search(head):
            reason = "body: must be sent with a Content-Length, not in chunks"
            raise _RefusedError(411, reason, field="body")
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        if length > max_body_bytes:
            reason = f"body: has {length} bytes; at most {max_body_bytes} are accepted"
            raise _RefusedError(413, reason, field="body")
        self.wanted = len(head) + length
        self.deadline = time.monotonic() + HEAD_WITHIN_S + length / BODY_BYTES_PER_S
        if self.wanted > len(self.received) and _EXPECTS.search(head):
            self.raw.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def expects_bytes(self) -> int:
        """How much to receive at once."""
        missing = self.wanted - len(self.received)
        return min(max(RECEIVE_BYTES, missing), RECEIVE_BODY_BYTES)

    def take(self) -> bytes:
        """The next request, which is whole."""
        request = bytes(self.received[: self.wanted])
        del self.received[: self.wanted]
        self.wanted = 0
        return request


class LoopWorker(ThreadWorker):
    """See the module."""

    _open_connections: Any  # of each worker, by `_place`; -1 where there is none

    @classmethod
    def setup(cls) -> None:
        """Run by gunicorn before it starts workers: make what they share."""
        cls._open_connections = RawArray("i", [-1] * MOST_WORKERS)

    @classmethod
    def forget(cls, worker: Any) -> None:
        """Run by gunicorn when a worker has died."""
        cls._open_connections[worker.age % MOST_WORKERS] = -1

    def init_process(self) -> None:
        """Run in the new process, until it ends."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self.connections: set[_Connection] = set()
        self._place = self.age % MOST_WORKERS
        self._leaves_since = 0.0
        self._look_at = 0.0
        self._count()
        super().init_process()

    def _count(self) -> None:
        self.nr_conns = self._open_connections[self._place] = len(self.connections)

    def load_wsgi(self) -> None:
        """Load the application, and learn which requests are quick."""
        super().load_wsgi()
        application: Any = self.wsgi
        self._is_quick: Callable[[bytes], bool] = application.extensions[QUICK]
        self._metrics: Metrics = application.extensions[METRICS]
        self._max_body_bytes: int = application.config["MAX_CONTENT_LENGTH"]

    # --- receiving ---------------------------------------------------------------------------

    def accept(self, listener: socket) -> None:
        """Take a new connection, and its request if that has come along."""
        if self._leaves_to_others():
            return
        try:
            raw, client = listener.accept()
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.ECONNABORTED}:
                raise
            return
        connection = _Connection(self.cfg, raw, client, listener.getsockname())
        connection.deadline = time.monotonic() + HEAD_WITHIN_S
        self.connections.add(connection)
        self._count()
        self._listen_to(connection)
        self._readable(connection, raw)

    def _leaves_to_others(self) -> bool:
        """Whether a worker with fewer connections should take the next; not if it lets us wait."""
        least = min(count for count in self._open_connections if count >= 0)
        now = time.monotonic()
        if self.nr_conns <= least:
            self._leaves_since = 0.0
        elif not self._leaves_since:
            self._leaves_since = now
        elif now - self._leaves_since > LEAVE_TO_OTHERS_S:
            self._leaves_since = 0.0
        return self._leaves_since > 0

    def _listen_to(self, connection: _Connection) -> None:
        readable = partial(self._readable, connection)
        self.poller.register(connection.raw, selectors.EVENT_READ, readable)

    def _readable(self, connection: _Connection, raw: socket) -> None:
        try:
            data = raw.recv(connection.expects_bytes())
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
        elif not connection.is_ending:
            if not connection.received:
                connection.deadline = time.monotonic() + HEAD_WITHIN_S
            connection.received += data
            self._serve(connection)

    def _serve(self, connection: _Connection) -> None:
        """Serve the requests that are whole, until one goes to the threads or ends it."""
        while connection.received and self._serve_next(connection):
            pass

    def _serve_next(self, connection: _Connection) -> bool:
        """Whether the loop can go on with the request after this one."""
        if connection.received.startswith((b"\r", b"\n")):  # RFC 9112 section 2.2
            connection.received = connection.received.lstrip(b"\r\n")
        try:
            if not connection.is_whole(self._max_body_bytes):
                self._require_room()
                return False
        except _RefusedError as refused:
            self._refuse(connection, refused)
            return False
        request = connection.take()
        connection.parser.unreader.unread(request)
        if not self._is_quick(request):
            self.poller.unregister(connection.raw)
            connection.raw.settimeout(SEND_WITHIN_S)
            connection.sock = connection.raw
            connection.deadline = float("inf")
            self.enqueue_req(connection)
            return False
        connection.sock = connection.outgoing
        connection.keeps = self._answered(connection)
        return self._send(connection)

    def _require_room(self) -> None:
        """Give up the connection that has most in the buffers, if these hold too much."""
        if sum(len(one.received) for one in self.connections) > MAX_BUFFERED_BYTES:
            largest = max(self.connections, key=lambda one: len(one.received))
            self._refuse(largest, _RefusedError(503, "too much is being sent at once; try later"))

    # --- answering ---------------------------------------------------------------------------

    def _answered(self, connection: _Connection) -> bool:
        """Answer the request that the parser has; whether the connection can be kept."""
        keeps: bool = super().handle(connection)
        return keeps and not connection.parser.unreader.buf.getvalue()

    def enqueue_req(self, conn: Any) -> None:
        """Hand a request to the threads."""
        answering = self.tpool.submit(self._answered, conn)
        answering.add_done_callback(
            lambda future: self.method_queue.defer(self.finish_request, conn, future)
        )

    def finish_request(self, conn: Any, fs: "Future[bool]") -> None:
        """In the loop again after a thread has answered."""
        conn.keeps = not fs.cancelled() and fs.exception() is None and fs.result()
        conn.raw.setblocking(False)
        self._listen_to(conn)
        if self._goes_on(conn):
            self._serve(conn)

    def _send(self, connection: _Connection) -> bool:
        """Send what is outgoing; whether the connection can go on at once."""
        data = connection.outgoing.taken()
        try:
            sent = connection.raw.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(connection)
            return False
        if sent == len(data):
            return self._goes_on(connection)
        connection.unsent = data[sent:]
        connection.deadline = time.monotonic() + SEND_WITHIN_S
        writable = partial(self._writable, connection)
        self.poller.modify(connection.raw, selectors.EVENT_WRITE, writable)
        return False

    def _writable(self, connection: _Connection, raw: socket) -> None:
        try:
            sent = raw.send(connection.unsent)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
            return
        connection.unsent = connection.unsent[sent:]
        if not connection.unsent:
            readable = partial(self._readable, connection)
            self.poller.modify(raw, selectors.EVENT_READ, readable)
            if self._goes_on(connection):
                self._serve(connection)

    def _goes_on(self, connection: _Connection) -> bool:
        """After an answer: whether another request may follow; if not, the connection ends."""
        if not connection.keeps:
            self._end(connection)
            return False
        connection.deadline = time.monotonic() + self.cfg.keepalive
        return True

    def _refuse(self, connection: _Connection, refused: _RefusedError) -> None:
        connection.received.clear()
        connection.keeps = False
        self._metrics.refused(refused.status)
        connection.outgoing.sendall(_problem(refused.status, str(refused), **refused.more))
        self._send(connection)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:  # noqa: ARG002
        """Answer what the parser or the application raised."""
        status = next((status for kind, status in _STATUS if isinstance(exc, kind)), 500)
        self._metrics.refused(status)
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.exception("error handling %s", getattr(req, "uri", "a request"))
            client.sendall(_problem(status, "something went wrong; the log says what"))
        else:
            client.sendall(_problem(status, str(exc)))

    # --- ending ------------------------------------------------------------------------------

    def _end(self, connection: _Connection) -> None:
        """Say that nothing follows, and wait until the client has closed (RFC 9112 section 9.6)."""
        connection.is_ending = True
        connection.deadline = time.monotonic() + LINGER_S
        try:
            connection.raw.shutdown(SHUT_WR)
        except OSError:  # the client was faster
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
            self._count()
            self.poller.unregister(connection.raw)
            connection.raw.close()

    def murder_keepalived(self, force: bool = False) -> None:
        """Give up connections whose time has come, or all; a request that came in part is told."""
        now = time.monotonic()
        if now < self._look_at and not force:
            return
        self._look_at = now + 1
        self._metrics.sample()  # at the very end, too, by `force`
        for connection in list(self.connections):
            if force and connection.deadline < float("inf"):
                self._drop(connection)
            elif now >= connection.deadline:
                self._give_up(connection)

    def _give_up(self, connection: _Connection) -> None:
        if connection.received and not connection.is_ending:
            self._refuse(connection, _RefusedError(408, "the request did not arrive in time"))
        else:
            self._drop(connection)

    def _cap_keepalive(self, deadline: float) -> None:
        """The worker stops: idle connections are kept until `deadline` at most."""
        for connection in self.connections:
            if connection.deadline < float("inf"):
                connection.deadline = min(connection.deadline, deadline)


def _problem(status: int, detail: str, **more: object) -> bytes:
    """A whole answer, after which the connection ends."""
    body = problem_body(status, detail, **more)
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {MIMETYPE}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
