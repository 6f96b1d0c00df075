"""A backend that answers over HTTP from a function, for what a chain would take long to hold."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.http_servers import Handler, served_by

PIECE_BYTES = 64 * 1024  # of what is posted, which is read and forgotten

Answer = Callable[[str, Mapping[str, str]], Any]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """The address of a service where `answer(path, parameters)` is what GET and POST get, as JSON.

    An HTTPStatus is answered as such, alone or in front of its JSON, and bytes as they are.
    """

    class Answering(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            reply = answer(parts.path, dict(parse_qsl(parts.query)))
            if isinstance(reply, HTTPStatus):
                reply = (reply, {})
            status, content = reply if isinstance(reply, tuple) else (HTTPStatus.OK, reply)
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
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

    with served_by(Answering) as url:
        yield url
