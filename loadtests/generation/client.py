"""Sends one HTTP request over a gevent socket and notes when it was sent and answered.

Every request has a connection of its own (`Connection: close`), unless a customer of interactions
keeps one. Sockets are plain and the answer is parsed by llhttp, which costs less than a whole
client library: processor time that the generator takes is time that the server lacks.

An answer has come when the kernel received its last bytes (SO_TIMESTAMPNS), not when this program
came round to reading them, which at high rates is some tenths of a millisecond later.
"""

import errno
import os
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from time import monotonic, time_ns
from urllib.parse import urlsplit

import gevent
import gevent.socket
from geventhttpclient.response import HTTPResponse

from loadtests.generation.rows import NO_ANSWER
from loadtests.generation.waiting import meet
from loadtests.servers.timing import Reported, reported

READ_BYTES = 65536
TIMEOUT_S = 600.0
STOPPED = "stopped before the answer came"
_STAMP, _STAMPED_BYTES = 35, 64  # SO_TIMESTAMPNS of Linux, and room for what it adds
JSON, NDJSON = "application/json", "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds the outcome of a request; times on CLOCK_MONOTONIC. problem: why `status` is 0.

    method: for Locust's console. body: empty unless asked over HTTP.
    """

    sent_s: float
    done_s: float
    status: int
    reported: Reported
    body_bytes: int
    problem: str
    method: str = "GET"
    body: bytes = b""


class Origin:
    """Connects to the server of a URL, whose name is resolved once. family: of its address."""

    def __init__(self, url: str) -> None:
        """Resolve the name. Raises ValueError if the URL is not of http, OSError if unknown."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"the host is {url!r}; it must be like http://127.0.0.1:8000")
        self.hostname = parts.hostname
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        port = parts.port or (443 if self._tls else 80)
        addresses = socket.getaddrinfo(self.hostname, port, type=socket.SOCK_STREAM)
        self.family: int = addresses[0][0]
        self._address = addresses[0][4]
        self._prefix = parts.path.rstrip("/")
        self._host = parts.netloc.rpartition("@")[2]

    def connect(self, connection: gevent.socket.socket) -> gevent.socket.socket:
        """Begin to connect; over TLS, return when that is done. Raises OSError."""
        try:
            if self._tls is not None:
                connection.connect(self._address)
                return self._tls.wrap_socket(connection, server_hostname=self.hostname)
            if (error := connection._sock.connect_ex(self._address)) not in {0, errno.EINPROGRESS}:
                raise OSError(error, os.strerror(error))
        except BaseException:
            connection.close()
            raise
        return connection

    def request(self, path: str, body: str, *, keep_alive: bool) -> bytes:
        """Return the bytes of a GET, or of a POST of a body: JSON lines to a path of /batch."""
        content = body.encode("utf-8")
        lines = [
            f"{method_of(body)} {self._prefix}{path} HTTP/1.1",
            f"Host: {self._host}",
            "Accept: application/json",
            f"Connection: {'keep-alive' if keep_alive else 'close'}",
        ]
        if content:
            kind = NDJSON if path.partition("?")[0].endswith("/batch") else JSON
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + content


def method_of(body: str) -> str:
    return "POST" if body else "GET"


class Client:
    """Asks an origin, one request at a time. keep_alive: by one connection, while it lasts."""

    def __init__(
        self, origin: Origin, *, keep_alive: bool = False, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._origin, self._keep_alive, self._timeout_s = origin, keep_alive, timeout_s
        self._socket: gevent.socket.socket | None = None
        self._received_s = 0.0

    def ask(
        self, path: str, then: Callable[[Answer], None], body: str = "", due_s: float = 0.0
    ) -> Answer:
        """GET `path`, or POST a `body` to it, then call `then` with the outcome, and return it.

        due_s: when to send; until then all is prepared. From then on, `then` is called even if this
        greenlet is killed.
        """
        response = HTTPResponse()
        problem = STOPPED
        request = self._origin.request(path, body, keep_alive=self._keep_alive)
        unconnected = stamped_socket(self._origin.family) if self._socket is None else None
        meet(due_s)
        sent_s = monotonic()
        try:
            with gevent.Timeout(self._timeout_s):
                if unconnected is not None:
                    self._socket = self._origin.connect(unconnected)
                self._exchange(request, response)
            problem = ""
        except gevent.Timeout:
            problem = f"no whole answer within {self._timeout_s:g} s"
        except (OSError, HTTPException) as failure:
            problem = f"{type(failure).__name__}: {failure}"
        finally:
            done_s = monotonic() if problem else max(sent_s, self._received_s)
            if problem or not self._keep_alive or response.should_close():
                self.close()
            headers = {} if problem else {name.lower(): text for name, text in response.items()}
            content = b"" if problem else bytes(response._body_buffer)
            status = NO_ANSWER if problem else response.status_code
            about = reported(headers), len(content), problem, method_of(body), content
            answer = Answer(sent_s, done_s, status, *about)
            then(answer)
        return answer

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, request: bytes, response: HTTPResponse) -> None:
        connection = self._socket
        assert connection is not None
        _send(connection, request)
        while not response.message_complete:
            received, self._received_s = received_by(connection)
            if received:
                response.feed(received)
            elif not response.headers_complete:
                raise ConnectionResetError("the connection was closed before an answer")
            elif "content-length" in response or "transfer-encoding" in response:
                raise ConnectionResetError("the connection was closed within the answer")
            else:
                return  # an answer without a length ends with the connection


def _send(connection: gevent.socket.socket, request: bytes) -> None:
    """Send a request, at once if the connection is made already, as it soon is on one machine."""
    sent = 0
    if _is_plain(connection):
        try:
            sent = connection._sock.send(request)
        except BlockingIOError:
            gevent.socket.wait_write(connection.fileno())
    connection.sendall(request[sent:])


def stamped_socket(family: int) -> gevent.socket.socket:
    """Return an unconnected socket, for which the kernel notes when bytes come."""
    stamped = gevent.socket.socket(family, socket.SOCK_STREAM)
    stamped.setsockopt(socket.SOL_SOCKET, _STAMP, 1)
    stamped.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stamped


def received_by(connection: gevent.socket.socket, most: int = READ_BYTES) -> tuple[bytes, float]:
    """Return the next bytes of an answer, and when they came. TLS hides that: then it is now."""
    if not _is_plain(connection):
        return connection.recv(most), monotonic()
    content, stamps, *_ = connection.recvmsg(most, _STAMPED_BYTES)
    ago_s = 0.0
    for _, kind, stamp in stamps:
        if kind == _STAMP:
            seconds, ns = struct.unpack("@ll", stamp)
            ago_s = max(0, time_ns() - ns - 1_000_000_000 * seconds) / 1e9
    return content, monotonic() - ago_s


def _is_plain(connection: gevent.socket.socket) -> bool:
    return type(connection) is gevent.socket.socket
