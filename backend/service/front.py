"""The application that connections are served by: what answers at once, and what waits in threads.

A request comes as an ASGI scope and is represented by its WSGI environ, as in every other door.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from flask import Flask

from backend.api import LEDGER, METRICS
from backend.api.metrics import Metrics
from backend.api.unread import Unread
from backend.ledger import Ledger
from backend.service.http_connection import CONNECTION

PIECE_BYTES = 256 * 1024  # of an answer that is longer, this much is in memory

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Answer(NamedTuple):
    """The begin of an answer. rest: what follows the body, None if that is all."""

    status: str
    headers: Headers
    body: bytes
    rest: "Rest | None" = None


class Front:
    """ASGI in front of a Flask application."""

    def __init__(self, application: Flask, threads: int) -> None:
        self.wsgi = application
        self.max_body_bytes: int = application.config["MAX_CONTENT_LENGTH"]
        metrics: Metrics = application.extensions[METRICS]
        ledger: Ledger = application.extensions[LEDGER]
        self.sample = metrics.sample
        self.stop_waiting = ledger.stop_waiting
        self.unread_problem = Unread(application, metrics).problem
        self._pool = ThreadPoolExecutor(threads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, all of which has come."""
        environ = environ_of(scope, await body_of(scope, receive))
        run = asyncio.get_running_loop().run_in_executor
        answer = await run(self._pool, answered, self.wsgi, environ)
        await begin(send, answer)
        if answer.rest is not None:
            await self._send_rest(answer.rest, scope, send)

    async def _send_rest(self, rest: "Rest", scope: Scope, send: Send) -> None:
        """Send an answer piece by piece; no thread waits for the client meanwhile."""
        run = asyncio.get_running_loop().run_in_executor
        try:
            while piece := await run(self._pool, rest.piece):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ConnectionResetError:  # it cannot be finished and must not look finished
            if scope["http_version"] == "1.0":
                scope[CONNECTION].reset()
        finally:
            await asyncio.shield(run(self._pool, rest.close))


async def begin(send: Send, answer: Answer) -> None:
    """Send the head and what there is of the body."""
    status = int(answer.status[:3])
    await send({"type": "http.response.start", "status": status, "headers": answer.headers})
    more = answer.rest is not None
    await send({"type": "http.response.body", "body": answer.body, "more_body": more})


class Rest:
    """What of a WSGI answer has not been sent."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self._iterator: Iterator[bytes] = iter(pieces)
        self._broken: ConnectionResetError | None = None

    def piece(self) -> bytes:
        """At least `PIECE_BYTES` more, or what is left; nothing at the end.

        Raises ConnectionResetError where the answer breaks off, after what comes before that.
        """
        if self._broken:
            raise self._broken
        collected: list[bytes] = []
        size = 0
        try:
            for piece in self._iterator:
                collected.append(piece)
                size += len(piece)
                if size >= PIECE_BYTES:
                    break
        except ConnectionResetError as error:
            if not collected:
                raise
            self._broken = error
        return b"".join(collected)

    def is_broken(self) -> bool:
        """Whether the answer breaks off after what has been taken of it."""
        return self._broken is not None

    def close(self) -> None:
        """Let go what the answer is made of."""
        if close := getattr(self._pieces, "close", None):
            close()


def answered(application: Callable[..., Iterable[bytes]], environ: Environ) -> Answer:
    """What a WSGI application answers."""
    begun: list[Any] = []

    def start(status: str, headers: Headers, exc_info: Any = None) -> None:  # noqa: ARG001
        begun[:] = status, headers

    rest = Rest(application(environ, start))
    try:
        body = rest.piece()
        is_all = len(body) < PIECE_BYTES and not rest.is_broken()
    except BaseException:
        rest.close()
        raise
    if is_all:
        rest.close()
    status, headers = begun
    return Answer(status, headers, body, None if is_all else rest)


# --- requests ------------------------------------------------------------------------------------


async def body_of(scope: Scope, receive: Receive) -> bytes:
    """The body of a request."""
    if not any(name == b"content-length" for name, _ in scope["headers"]):
        return b""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def environ_of(scope: Scope, body: bytes) -> Environ:
    """The WSGI environ (PEP 3333) of a request."""
    target: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    if not target.startswith(b"/") or b"#" in target or b"#" in query:
        target, query = _path_and_query(target, query)
    client, server = scope["client"], scope["server"]
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": (unquote_to_bytes(target) if b"%" in target else target).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": str(server[0]) if server else "",
        "SERVER_PORT": str(server[1]) if server and len(server) > 1 else "",
        "REMOTE_ADDR": str(client[0]) if client else "",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        variable = _variable(name)
        text = value.decode("latin-1")
        if variable in environ:
            text = f"{environ[variable]},{text}"
        environ[variable] = text
    return environ


def _path_and_query(target: bytes, query: bytes) -> tuple[bytes, bytes]:
    """Of an address in full (RFC 9112 section 3.2.2), or with a fragment."""
    parts = urlsplit(target + (b"?" + query if query else b""))
    return parts.path, parts.query


@lru_cache(maxsize=256)
def _variable(header: bytes) -> str:
    """The name in the environ of a header in small letters."""
    name = header.decode("latin-1").upper().replace("-", "_")
    return name if name in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{name}"
