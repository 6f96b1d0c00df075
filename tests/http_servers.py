"""Servers whose requests a test answers by a handler of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    """Answers without a log."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served_by(handler: type[Handler]) -> Iterator[str]:
    """Yield the address of a server whose requests are handled so."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
