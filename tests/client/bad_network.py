"""A bad network between a client and its service."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import HTTPServer
from typing import Any, NamedTuple

from flightchain_client import Client
from tests.api.processes import Reached
from tests.http_servers import Handler, running

BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
    b"Retry-After: %s\r\nContent-Length: 40\r\nConnection: close\r\n\r\n"
    b'{"title":"Busy","detail":"try later..."}'
)


class Proxy(NamedTuple):
    """What stands between them. seen: the keys of the POSTs."""

    url: str
    seen: list[str]


@contextmanager
def spoiling(service: Reached, *spoils: str) -> Iterator[Proxy]:
    """Pass requests on to `service`, one after the other, and spoil some.

    spoils: what becomes of each POST in turn: "cut" forwards it, waits until the service has
    answered, and ends the connection; "half" sends a part of that answer, "unframed" without its
    length; a number is a 503 with that Retry-After, nothing is forwarded; "" and everything after
    the last passes.
    """
    left, seen = list(spoils), list[str]()

    class Passing(Handler):
        def handle_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            spoil = ""
            if self.command == "POST":
                seen.append(self.headers.get("Idempotency-Key", "none"))
                spoil = left.pop(0) if left else ""
            if spoil.isdigit() or spoil.endswith("GMT"):
                self.wfile.write(BUSY % spoil.encode())
                return
            answer = answer_of(service, self, body)
            if spoil == "unframed":
                answer = answer.replace(b"Content-Length", b"X-Length")
            self.wfile.write(answer[: {"cut": 0, "": None}.get(spoil, -10)])

        do_GET = do_POST = do_DELETE = handle_request

    with running(HTTPServer(("127.0.0.1", 0), Passing)) as url:
        yield Proxy(url, seen)


def answer_of(service: Reached, asked: Handler, body: bytes) -> bytes:
    """All that the service says to one request."""
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=30)) as forward:
        forward.request(asked.command, asked.path, body, dict(asked.headers))
        answer = forward.getresponse()
        content = answer.read()
    headers = {**dict(answer.getheaders()), "Connection": "close"}
    lines = (f"{name}: {value}" for name, value in headers.items())
    head = [f"HTTP/1.1 {answer.status} {answer.reason}", *lines, "", ""]
    return "\r\n".join(head).encode() + content


@contextmanager
def through(service: Reached, *spoils: str, **more: Any) -> Iterator[tuple[Client, Proxy]]:
    """A client that reaches `service` through a proxy."""
    with spoiling(service, *spoils) as proxy, Client(proxy.url, **more) as client:
        yield client, proxy
