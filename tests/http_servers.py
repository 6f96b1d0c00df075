"""Servers of a test, whose requests a handler or an application of its own answers."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    """Answers without a log."""

    def log_message(self, *_: object) -> None:
        pass


def served_by(handler: type[Handler]) -> AbstractContextManager[str]:
    """Yield the address of a server whose requests are handled so."""
    return running(ThreadingHTTPServer(("127.0.0.1", 0), handler))


@contextmanager
def running(server: HTTPServer) -> Iterator[str]:
    """Run a server in a thread, and yield its address."""
    with server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
