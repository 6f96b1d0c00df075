"""Servers of a test, whose requests a handler or an application of its own answers."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from threading import Thread
from typing import Any

from werkzeug.serving import make_server

Serve = Callable[[socket.socket], None]


class Handler(BaseHTTPRequestHandler):
    """Answers without a log; a client may leave before it has the answer."""

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


def served_by(handler: type[Handler]) -> AbstractContextManager[str]:
    """Yield the address of a server whose requests are handled so."""
    return running(ThreadingHTTPServer(("127.0.0.1", 0), handler))


def served_in_a_thread(application: Any) -> AbstractContextManager[str]:
    """Yield the address of a WSGI application."""
    return running(make_server("127.0.0.1", 0, application, threaded=True))


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


@contextmanager
def answering(serve: Serve, *, is_read: bool = True) -> Iterator[str]:
    """The URL of a server of one connection after the other; `serve` gets each of them.

    is_read: whether the request has been read then.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        if is_read:
                            connection.recv(65536)
                        serve(connection)

        thread = Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def saying(data: bytes) -> Serve:
    """Send it; what still comes is read, because a connection closed before that is reset."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        while connection.recv(65536):
            pass

    return serve
