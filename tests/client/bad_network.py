"""A bad network between a client and its service."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from flightchain_client import (
    Client,
)
from tests.api.processes import Service

BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
    b"Retry-After: %s\r\nContent-Length: 40\r\nConnection: close\r\n\r\n"
    b'{"title":"Busy","detail":"try later..."}'
)


class Proxy:
    """Passes requests on to `service`, one a connection, and spoils some.

    spoils: what becomes of each POST in turn: "cut" forwards it, waits until the service has
    answered, and ends the connection; "half" sends half of that answer; a number is a 503 with that
    Retry-After, nothing is forwarded; "" and everything after the last passes. seen: the keys of
    the POSTs.
    """

    def __init__(self, service: Service, *spoils: str) -> None:
        self._service = service
        self._spoils = list(spoils)
        self.seen: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                with connection:
                    self._pass_on(connection)

    def _pass_on(self, connection: socket.socket) -> None:
        request = whole_request(connection)
        if not request:
            return
        spoil = ""
        if request.startswith(b"POST"):
            head = request.partition(b"\r\n\r\n")[0].decode()
            keys = [x[17:] for x in head.split("\r\n") if x.lower().startswith("idempotency-key: ")]
            self.seen += keys or ["none"]
            spoil = self._spoils.pop(0) if self._spoils else ""
        if spoil.isdigit() or spoil.endswith("GMT"):
            connection.sendall(BUSY % spoil.encode())
            return
        answer = self._answered(request)
        kept = {"cut": 0, "half": len(answer) - 10, "": len(answer)}[spoil]
        connection.sendall(answer[:kept])

    def _answered(self, request: bytes) -> bytes:
        """All that the service says to one request."""
        closed = request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        closed = closed.replace(b"Connection: keep-alive\r\n", b"")
        answer = b""
        with socket.create_connection(("127.0.0.1", self._service.port), 30) as forward:
            forward.sendall(closed)
            while part := forward.recv(65536):
                answer += part
        return answer


def whole_request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        if not (part := connection.recv(65536)):
            return b""
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")]
    missing = (int(lengths[0].split(b":")[1]) if lengths else 0) - len(body)
    while missing > 0 and (part := connection.recv(missing)):
        received += part
        missing -= len(part)
    return received


@contextmanager
def through(service: Service, *spoils: str, **more: Any) -> Iterator[tuple[Client, Proxy]]:
    """A client that reaches `service` through a proxy."""
    with closing(Proxy(service, *spoils)) as proxy, Client(proxy.url, **more) as client:
        yield client, proxy
