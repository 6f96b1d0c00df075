"""Turns requests from ASGI into WSGI environs (PEP 3333)."""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from io import BytesIO
from typing import Any
from urllib.parse import unquote_to_bytes

STARTED = "flightchain.started"  # in the environ: when its answer was begun, by `perf_counter`
WAIT = "flightchain.wait"  # in the environ: the wait for a thread, as a part of Server-Timing

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


async def body_from(receive: Receive) -> bytes:
    """The body of a request."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def environ_of(scope: Scope, body: bytes = b"") -> Environ:
    """The environ of a request."""
    target: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    if not target.startswith(b"/") or b"#" in target or b"#" in query:
        target, query = _path_and_query(target, query)
    environ = _environ_on(
        scope["client"], scope["server"], scope["scheme"], scope["http_version"]
    ).copy()
    environ["REQUEST_METHOD"] = scope["method"]
    environ["PATH_INFO"] = (unquote_to_bytes(target) if b"%" in target else target).decode(
        "latin-1"
    )
    environ["QUERY_STRING"] = query.decode("latin-1")
    environ["wsgi.input"] = BytesIO(body)
    for name, value in scope["headers"]:
        variable = _variable(name)
        text = value.decode("latin-1")
        if variable in environ:
            text = f"{environ[variable]},{text}"
        environ[variable] = text
    return environ


@lru_cache(maxsize=1024)  # as many connections
def _environ_on(
    client: tuple[Any, ...] | None, server: tuple[Any, ...] | None, scheme: str, version: str
) -> Environ:
    """The part of an environ that all requests of a connection share."""
    environ = _ALWAYS.copy()
    environ["SERVER_PROTOCOL"] = "HTTP/1.1" if version == "1.1" else "HTTP/1.0"
    environ["wsgi.url_scheme"] = scheme
    if client:
        environ["REMOTE_ADDR"] = client[0]
    if server:
        environ["SERVER_NAME"] = server[0]
        environ["SERVER_PORT"] = str(server[1]) if len(server) > 1 else ""
    return environ


def _path_and_query(target: bytes, query: bytes) -> tuple[bytes, bytes]:
    """Path and query of an address in full form (RFC 9112 section 3.2.2), or with a fragment."""
    target, fragment, _ = target.partition(b"#")
    query = b"" if fragment else query.partition(b"#")[0]
    if b"://" in target and not target.startswith(b"/"):
        target = b"/" + target.partition(b"://")[2].partition(b"/")[2]
    return target, query


@lru_cache(maxsize=256)
def _variable(header: bytes) -> str:
    """The name that a header has in the environ. header: its name in small letters."""
    name = header.decode("latin-1").upper().replace("-", "_")
    return name if name in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{name}"
