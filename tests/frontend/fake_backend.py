"""A backend that answers over HTTP from a function, for what a chain would take long to hold."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

PIECE_BYTES = 64 * 1024  # of what is posted, which is read and forgotten

Answer = Callable[[str, Mapping[str, str]], Any]


class Handler(BaseHTTPRequestHandler):
    """Answers without a log."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    """The address of a service whose requests are handled so."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The address of a service where `answer(path, parameters)` is what GET and POST get, as JSON.

    An HTTPStatus is answered as such.
    """

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            found = answer(parts.path, dict(parse_qsl(parts.query)))
            status = found if isinstance(found, HTTPStatus) else HTTPStatus.OK
            body = json.dumps({} if status is found else found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            left = int(self.headers["Content-Length"])
            while left:
                left -= len(self.rfile.read(min(left, PIECE_BYTES)))
            self.do_GET()

    with serving(Answering) as url:
        yield url
