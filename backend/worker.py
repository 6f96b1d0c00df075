"""The gunicorn worker: a loop receives every request whole, and answers the quick ones itself.

gunicorn's threaded worker hands every request to a thread and back. With Python's one interpreter
lock that costs more than a quick answer itself, and a client that is slow to send keeps a thread.
Here the loop (the main thread) owns all connections:

- A request goes on only when its head and body are there. Until then it costs a buffer and no
  thread, so neither silent nor dribbling clients keep anybody from asking.
- A quick one (the application tells it by its head) is answered in the loop:
  no other thread is awake then.
- Workers take turns with new connections: one that has more than another leaves them to it for a
  moment. Otherwise few clients can all end up with the same worker, while the others idle.
- Everything else, whatever might wait for a disk, a lock or a scan, goes to the threads.
- Of that, some go together (the application tells these, too): posts of single flights, which share
  the sync of the disk and much else. One thread has a group of them in hand; those that come
  meanwhile are the next group. See `backend.together`.
- Answers are sent by the loop, head and body in one packet. A client that does not read its answer
  costs a buffer, too, and no thread; but for exports, which are too long for a buffer.

What HTTP itself refuses is answered with a problem, too, like every other error.
"""

import errno
import os
import re
import resource
import selectors
import struct
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from multiprocessing.sharedctypes import RawArray
from socket import SHUT_WR, SO_LINGER, SOL_SOCKET, socket
from typing import Any, TypeVar

from gunicorn.http import errors
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import TConn, ThreadWorker

from backend.api import METRICS, QUICK, TOGETHER
from backend.api.conditions import NO_STORE
from backend.api.exporting import CutAnswerError
from backend.api.metrics import Metrics
from backend.api.observing import ACCESS_LOG, ALWAYS, new_request_id, write_line
from backend.api.problems import MIMETYPE, problem_body
from backend.together import run
from backend.visitors import without_secrets

RECEIVE_BYTES = 4 * 1024  # few, so that one client's requests keep the others waiting only briefly
RECEIVE_BODY_BYTES = 2**20  # of a body as much as is missing, up to this
MAX_HEAD_BYTES = 32 * 1024
MAX_RECEIVED_BYTES = 32 * 2**20  # of requests that are not whole, in one worker
MAX_UNSENT_BYTES = 32 * 2**20  # of answers that nobody reads, in one worker
HEAD_WITHIN_S = 10.0
SEND_WITHIN_S = 30.0
BYTES_PER_S = 8 * 1024  # on top of both; slower clients are given up
LINGER_S = 2.0
MOST_TOGETHER = 32  # they share what they can by then, and wait for each other
STREAM_BYTES = 256 * 1024
LEAVE_TO_OTHERS_S = 0.002
NOT_ACCEPTING_S = 0.5  # after the system has refused a connection
OTHER_DESCRIPTORS = 100  # that a worker keeps free for files, and some for each thread
DESCRIPTORS_A_THREAD = 4
MOST_WORKERS = 128  # live ones and those that have just died
SWITCH_INTERVAL_S = 0.0005  # how long a thread may keep the loop waiting for the interpreter

T = TypeVar("T")

_HEAD_END = b"\r\n\r\n"
_LENGTHS = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*([^\r]*)", re.IGNORECASE)
_NUMBER = re.compile(rb"([0-9]{1,15})[ \t]*")
_CHUNKED = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(
    rb"[^\r]* HTTP/1\.1(?=\r).*\r\nexpect[ \t]*:[ \t]*100-continue[ \t]*\r\n",
    re.IGNORECASE | re.DOTALL,
)

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

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
    """Takes an answer as a socket would, to be sent by the loop.

    An answer that comes in more pieces than `STREAM_BYTES` hold is too long to be collected: the
    thread that makes it sends it, and waits for the client. Only exports are such.
    """

    def __init__(self, raw: socket) -> None:
        self._raw = raw
        self._pieces: list[bytes] = []
        self._bytes = 0
        self.is_broken = False

    def setblocking(self, flag: bool) -> None:
        """Never blocks."""

    def sendall(self, data: bytes) -> None:
        """Take a piece. Raises ConnectionResetError if the client does not read a long answer."""
        if self._bytes >= STREAM_BYTES:
            self._send_in_thread(self.taken())
        self._pieces.append(data)
        self._bytes += len(data)

    def _send_in_thread(self, data: bytes) -> None:
        self._raw.settimeout(SEND_WITHIN_S)
        try:
            self._raw.sendall(data)
        except OSError as error:
            self.is_broken = True
            raise ConnectionResetError(errno.ECONNRESET, str(error)) from error
        finally:
            self._raw.setblocking(False)

    def taken(self) -> bytes:
        """Everything since the last time."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._bytes = 0
        return data


class _Connection(TConn):
    """A client's connection.

    received: bytes that no request has taken yet. wanted: length of the next request, 0 while its
    head is incomplete. unsent: an answer of which only `sent` bytes are sent. deadline: when the
    loop gives up, monotonic seconds; infinite while a thread has the request. is_ending: only waits
    until the client has closed.
    """

    def __init__(self, cfg: Any, raw: socket, client: Any, server: Any) -> None:
        super().__init__(cfg, raw, client, server)
        self.raw = raw
        self.sock: Any = _Outgoing(raw)  # where gunicorn writes the answer
        self.outgoing: _Outgoing = self.sock
        self.parser: Any = RequestParser(cfg, (), client)  # is given whole requests, never reads
        self.initialized = True
        self.received = bytearray()
        self.wanted = 0
        self.unsent = b""
        self.sent = 0
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
        length = _length(head)
        if length > max_body_bytes:
            reason = f"body: has {length} bytes; at most {max_body_bytes} are accepted"
            raise _RefusedError(413, reason, field="body")
        self.wanted = len(head) + length
        self.deadline = time.monotonic() + HEAD_WITHIN_S + length / BYTES_PER_S
        if self.wanted > len(self.received) and _EXPECTS.match(head):
            with suppress(OSError):  # whoever does not hear it sends the body all the same, or goes
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


def _length(head: bytes | bytearray) -> int:
    """Of the body, in bytes. Raises _RefusedError unless it can be understood in one way only.

    Where a body ends must be clear: what is taken for a body here and for a request elsewhere would
    carry requests past a proxy.
    """
    given = _LENGTHS.findall(head)
    if not given:
        return 0
    found = _NUMBER.fullmatch(given[0])
    if found is None or len(given) > 1:
        reason = "Content-Length: must be given once, as a number of at most 15 digits"
        raise _RefusedError(400, reason, field="Content-Length")
    return int(found[1])


class LoopWorker(ThreadWorker):
    """See the module."""

    _open_connections: Any  # of each worker, by `_place`; -1 where there is none

    @classmethod
    def setup(cls) -> None:
        """Run by gunicorn before it starts workers: make what they share."""
        cls._open_connections = RawArray("i", [-1] * MOST_WORKERS)

    @classmethod
    def forget(cls, worker: Any) -> None:
        """Run by gunicorn when a worker of any kind has died."""
        if isinstance(worker, cls):
            cls._open_connections[worker.age % MOST_WORKERS] = -1

    def init_process(self) -> None:
        """Run in the new process, until it ends."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self.connections: set[_Connection] = set()
        self._place = self.age % MOST_WORKERS
        self._leaves_since = 0.0
        self._gathered: list[_Connection] = []  # whose requests go together
        self._has_group = False  # a thread has such requests in hand
        self._look_at = 0.0
        self._accept_from = 0.0
        self._count()
        self._keep_descriptors_free()
        super().init_process()

    def _keep_descriptors_free(self) -> None:
        """Accept no connections that would leave the ledger without descriptors for its files."""
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        others = OTHER_DESCRIPTORS + DESCRIPTORS_A_THREAD * self.cfg.threads
        self.worker_connections = min(self.worker_connections, max(1, most - others))

    def _count(self) -> None:
        self.nr_conns = self._open_connections[self._place] = len(self.connections)

    def load_wsgi(self) -> None:
        """Load the application, and learn which requests are quick."""
        super().load_wsgi()
        application: Any = self.wsgi
        self._is_quick: Callable[[bytes], bool] = application.extensions[QUICK]
        self._goes_together: Callable[[bytes], bool] = application.extensions[TOGETHER]
        self._access_log: bool = application.extensions[ACCESS_LOG]
        always: tuple[tuple[str, str], ...] = application.extensions[ALWAYS]
        self._always = "".join(f"{name}: {value}\r\n" for name, value in always)
        self._metrics: Metrics = application.extensions[METRICS]
        self._max_body_bytes: int = application.config["MAX_CONTENT_LENGTH"]

    def handle_quit(self, sig: Any, frame: Any) -> None:  # noqa: ARG002
        """End at once. A signal may come while this very thread holds a lock, so none is taken."""
        os._exit(0)

    # --- receiving ---------------------------------------------------------------------------

    def accept(self, listener: socket) -> None:
        """Take a new connection, and its request if that has come along."""
        if self.nr_conns >= self.worker_connections or self._leaves_to_others():
            return
        try:
            raw, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptor is left, or no memory
            self.log.warning("cannot accept connections for a moment: %s", error)
            self._accept_from = time.monotonic() + NOT_ACCEPTING_S
            self.set_accept_enabled(False)
            return
        connection = _Connection(self.cfg, raw, client, listener.getsockname())
        connection.deadline = time.monotonic() + HEAD_WITHIN_S
        self.connections.add(connection)
        self._count()
        self._listen_to(connection)
        self._readable(connection, raw)

    def set_accept_enabled(self, enabled: bool | None) -> None:
        """Whether to accept connections; not at once after that has failed."""
        super().set_accept_enabled(bool(enabled) and time.monotonic() >= self._accept_from)

    def _leaves_to_others(self) -> bool:
        """Whether a worker with fewer connections should take the next; not if it lets us wait."""
        least = min((count for count in self._open_connections if count >= 0), default=0)
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
                self._require_room(connection)
                return False
        except _RefusedError as refused:
            self._refuse(connection, refused)
            return False
        request = connection.take()
        connection.parser.unreader.unread(request)
        if not self._is_quick(request):
            self.poller.unregister(connection.raw)
            connection.deadline = float("inf")
            if self._goes_together(request):
                self._gathered.append(connection)
            else:
                self.enqueue_req(connection)
            return False
        connection.keeps = self._answered(connection)
        return self._send(connection)

    def _require_room(self, connection: _Connection) -> None:
        """Refuse a client that fills its buffer further while all of them together hold too much.

        Small requests are always received: those below an equal share of the room.
        """
        share = MAX_RECEIVED_BYTES // self.worker_connections
        if len(connection.received) > share:
            total = sum(len(one.received) for one in self.connections)
            if total > MAX_RECEIVED_BYTES:
                raise _RefusedError(503, "too much is being sent at once; try later")

    # --- answering ---------------------------------------------------------------------------

    def _answered(self, connection: _Connection) -> bool:
        """Answer the request that the parser has; whether the connection can be kept."""
        keeps: bool = super().handle(connection)
        return keeps

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        """Let go what nobody read of the body: it is all here, and no other request is."""
        conn.parser.unreader.take_buffered()
        conn.parser.mesg = None
        return keepalive

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer a request; nobody waits for 100 Continue any more, as all of it is here.

        An answer that breaks off lacks its last chunk; HTTP/1.0 knows none, and is reset.
        """
        req._expected_100_continue = False
        try:
            return super().handle_request(req, conn)
        except CutAnswerError:
            conn.outgoing.is_broken = req.version < (1, 1)
            raise

    def enqueue_req(self, conn: Any) -> None:
        """Hand a request to the threads."""
        self._in_thread(partial(self._answered, conn), partial(self.finish_request, conn))

    def _in_thread(self, work: Callable[[], T], finish: "Callable[[Future[T]], None]") -> None:
        """Have a thread do `work`, and the loop `finish` it."""
        future = self.tpool.submit(work)
        future.add_done_callback(lambda done: self.method_queue.defer(finish, done))

    def finish_request(self, conn: Any, fs: "Future[bool]") -> None:
        """In the loop again after a thread has answered."""
        self._finish(conn, fs.result())

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        """A turn of the loop. Then what was gathered goes to a thread, unless more is there."""
        super().wait_for_and_dispatch_events(timeout)
        while self._gathered and not self._has_group:
            before = len(self._gathered)
            super().wait_for_and_dispatch_events(0)
            if not before < len(self._gathered) < MOST_TOGETHER:
                self._hand_over_group()

    def _hand_over_group(self) -> None:
        group = self._gathered[:MOST_TOGETHER]
        del self._gathered[:MOST_TOGETHER]
        self._has_group = True
        tasks = [partial(self._answered, one) for one in group]
        self._in_thread(partial(run, tasks), partial(self._finish_group, group))

    def _finish_group(self, group: list[_Connection], fs: "Future[list[bool]]") -> None:
        """In the loop again after a thread has answered all of them."""
        self._has_group = False
        for connection, keeps in zip(group, fs.result(), strict=True):
            self._finish(connection, keeps)

    def _finish(self, connection: _Connection, keeps: bool) -> None:
        connection.keeps = keeps
        if connection.outgoing.is_broken:
            connection.raw.setsockopt(SOL_SOCKET, SO_LINGER, _RESET_ON_CLOSE)
        self._listen_to(connection)
        if connection.outgoing.is_broken:
            self._drop(connection)
        elif self._send(connection):
            self._serve(connection)

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
        connection.unsent, connection.sent = data, sent
        connection.deadline = time.monotonic() + SEND_WITHIN_S + len(data) / BYTES_PER_S
        writable = partial(self._writable, connection)
        self.poller.modify(connection.raw, selectors.EVENT_WRITE, writable)
        self._limit_unsent()
        return False

    def _limit_unsent(self) -> None:
        """Give up the clients whose time to read ends first, while too much waits for clients."""
        waiting = sorted((one for one in self.connections if one.unsent), key=_deadline)
        total = sum(len(one.unsent) for one in waiting)
        for one in waiting[:-1]:
            if total <= MAX_UNSENT_BYTES:
                break
            total -= len(one.unsent)
            self._drop(one)

    def _writable(self, connection: _Connection, raw: socket) -> None:
        try:
            connection.sent += raw.send(memoryview(connection.unsent)[connection.sent :])
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)
            return
        if connection.sent == len(connection.unsent):
            connection.unsent = b""
            readable = partial(self._readable, connection)
            self.poller.modify(raw, selectors.EVENT_READ, readable)
            if self._goes_on(connection):
                self._serve(connection)

    def _goes_on(self, connection: _Connection) -> bool:
        """After an answer: whether another request may follow; if not, the connection ends."""
        if not connection.keeps:
            self._end(connection)
            return False
        within_s = HEAD_WITHIN_S if connection.received else self.cfg.keepalive
        connection.deadline = time.monotonic() + within_s
        return True

    def _refuse(self, connection: _Connection, refused: _RefusedError) -> None:
        connection.received.clear()
        connection.keeps = False
        self._metrics.refused(refused.status)
        problem = self._problem(connection.client, refused.status, str(refused), **refused.more)
        connection.outgoing.sendall(problem)
        self._send(connection)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer what the parser or the application raised."""
        status = next((status for kind, status in _STATUS if isinstance(exc, kind)), 500)
        self._metrics.refused(status)
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.exception("error handling %s", getattr(req, "uri", "a request"))
            client.sendall(self._problem(addr, status, "something went wrong; the log says what"))
        else:
            client.sendall(self._problem(addr, status, without_secrets(str(exc))))

    def _problem(self, client: Any, status: int, detail: str, **more: object) -> bytes:
        """A whole answer, after which the connection ends; it is logged like any other."""
        body, request_id = problem_body(status, detail, **more), new_request_id()
        later = "Retry-After: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {MIMETYPE}\r\n{later}"
            f"Content-Length: {len(body)}\r\nCache-Control: {NO_STORE}\r\n"
            f"X-Request-ID: {request_id}\r\n{self._always}Connection: close\r\n\r\n"
        )
        if self._access_log:
            write_line(
                request_id=request_id,
                method=None,
                route=None,
                query=None,
                status=status,
                bytes=len(body),
                duration_ms=None,
                client=client[0] if isinstance(client, tuple) else None,
                is_whole=True,
            )
        return head.encode("ascii") + body

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
        if connection.received and not connection.unsent and not connection.is_ending:
            self._refuse(connection, _RefusedError(408, "the request did not arrive in time"))
        else:
            self._drop(connection)

    def _cap_keepalive(self, deadline: float) -> None:
        """The worker stops: who has nothing to read is kept until `deadline` at most."""
        for connection in self.connections:
            if connection.deadline < float("inf") and not connection.unsent:
                connection.deadline = min(connection.deadline, deadline)


def _deadline(connection: _Connection) -> float:
    return connection.deadline
