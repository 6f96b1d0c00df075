"""Turns requests from ASGI into WSGI environs (PEP 3333)."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from io import BytesIO
from typing import IO, Any
from urllib.parse import unquote_to_bytes

from backend.serving.body_files import WRITTEN_BYTES

STARTED = "flightchain.started"  # in the environ: when its answer was begun, by `perf_counter`
ABANDONED = "flightchain.abandoned"  # in the environ, once the client has left: work may stop
WAIT = "flightchain.wait"  # in the environ: the wait for a thread, as a part of Server-Timing

CONNECTION = "flightchain.connection"  # in the ASGI scope: the `Connection` of the request
CLOSE = ("Connection", "close")  # a field of an answer after which the connection ends

Environ = dict[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


_ALWAYS: Environ = {
    "SCRIPT_NAME": "",
    "REMOTE_ADDR": "",
    "SERVER_NAME": "",
    "SERVER_PORT": "",
    "wsgi.version": (1, 0),
    "wsgi.errors": sys.stderr,
    "wsgi.multithread": True,
    "wsgi.multiprocess": True,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,  # it ends where the body ends
}


class ClientGoneError(Exception):
    """The client has left before its request was complete."""


async def receive_body(receive: Receive, body: IO[bytes]) -> None:
    """Write the body of a request to `body`, and go to its start.

    Raises ClientGoneError, and OSError on a full disk.
    """
    pieces: list[bytes] = []
    size, is_whole = 0, False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        is_whole = not message.get("more_body")
        if isinstance(body, BytesIO):
            body.write(pieces.pop())
        elif is_whole or size >= WRITTEN_BYTES:  # a disk may let its writers wait, but not the loop
            await asyncio.to_thread(body.write, b"".join(pieces))
            pieces, size = [], 0
    body.seek(0)


def environ_of(scope: Scope) -> Environ:
    """Return the environ of a request. Its scheme is https if X-Forwarded-Proto says so.

    Fields with an underscore in their name are left out: nobody could tell them from those with a
    hyphen.
    """
    target: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    environ = _environ_on(
        scope["client"], scope["server"], scope["scheme"], scope["http_version"]
    ).copy()
    environ["REQUEST_METHOD"] = scope["method"]
    environ["PATH_INFO"] = (unquote_to_bytes(target) if b"%" in target else target).decode(
        "latin-1"
    )
    environ["QUERY_STRING"] = query.decode("latin-1")
    environ["wsgi.input"] = BytesIO()
    for name, value in scope["headers"]:
        if variable := _variable(name):
            text = value.decode("latin-1")
            environ[variable] = f"{environ[variable]},{text}" if variable in environ else text
    if environ.get("HTTP_X_FORWARDED_PROTO") == "https":
        environ["wsgi.url_scheme"] = "https"
    return environ


@lru_cache(maxsize=1024)  # as many connections
def _environ_on(
    client: tuple[Any, ...] | None, server: tuple[Any, ...] | None, scheme: str, version: str
) -> Environ:
    """Return the part of an environ that all requests of a connection share."""
    environ = _ALWAYS.copy()
    environ["SERVER_PROTOCOL"] = "HTTP/1.1" if version == "1.1" else "HTTP/1.0"
    environ["wsgi.url_scheme"] = scheme
    if client:
        environ["REMOTE_ADDR"] = client[0]
    if server:
        environ["SERVER_NAME"] = server[0]
        environ["SERVER_PORT"] = str(server[1]) if len(server) > 1 else ""
    return environ


@lru_cache(maxsize=256)
def _variable(header: bytes) -> str:
    """Return the name that a header has in the environ; "" if it must not be there.

    header: its name in small letters.
    """
    if b"_" in header:
        return ""
    name = header.decode("latin-1").upper().replace("-", "_")
    return name if name in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{name}"
