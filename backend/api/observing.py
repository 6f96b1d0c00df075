"""What one can see of a request: its id, how long it took, and a line in a log.

- `X-Request-ID`, in every answer: the client's own if it is 1 to 64 characters of [A-Za-z0-9._-],
  else made here (of this process and a count; unique, no secret). Errors are logged with it.
- `Server-Timing: total;dur=MS`, from the call of the application until its headers go out, and
  `index` or `scan` where a question was asked. Waiting for a thread comes before that. Posts that
  are answered together wait for each other: what is done for all is part of each. Of a scan also
  its stages (see `backend.costs`): `file`, with the blocks read and in how many refills,
  `decompress`, `hash`, `decode`, `filter`; and how many blocks the caches `last` and `random` had.
- `X-Emulated-Disk: K`, in every answer of a service whose disk is emulated, and in no other.
- The access log, if it is on: one line of JSON on standard error for each request, written when its
  body has gone out or broken off (`is_whole` false). `route` is null for what has none.

All of it is one WSGI layer and no hook of Flask: it is part of every request, however quick.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec
from flask import Flask

from backend.api.conditions import Environ

ACCESS_LOG = "flightchain.access_log"  # in the application's extensions: whether it is on
ALWAYS = "flightchain.always"  # in the extensions: headers that every answer has besides
REQUEST_ID = "flightchain.request_id"  # in the environ
ROUTE = "flightchain.route"  # in the environ: the rule, if it was met without Flask
PARTS = "flightchain.timing_parts"  # in the environ: more of Server-Timing, with a comma before it

MAX_LOGGED_CHARACTERS = 1000

_is_good_id = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_process = ""
_numbers: "count[int]"

Headers = list[tuple[str, str]]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def _begin_process() -> None:
    """Give this process a name of its own: workers are forked from one that has one already."""
    global _process, _numbers
    _process, _numbers = os.urandom(6).hex(), count(1)


_begin_process()
os.register_at_fork(after_in_child=_begin_process)


def new_request_id() -> str:
    """An id for a request that came without one."""
    return f"{_process}-{next(_numbers):x}"


def route_of(environ: Environ) -> str | None:
    """The rule of the application that a request has met; None for an address that is not ours.

    Only while the headers go out: before there is no request of Flask, and afterwards it lets go.
    """
    route: str | None = environ.get(ROUTE)
    if route is not None:
        return route
    # None while Flask has not looked for the route.
    rule = getattr(environ.get("werkzeug.request"), "url_rule", None)
    return None if rule is None else str(rule.rule)


def install(app: Flask, *, access_log: bool, emulated_disk: int = 0) -> None:
    """Put the layer around `app`. emulated_disk: K, 0 for a real one."""
    app.extensions[ACCESS_LOG] = access_log
    always = app.extensions[ALWAYS] = emulation_headers(emulated_disk)
    inner: Any = _observed(app.wsgi_app, always)
    if access_log:
        inner = _logged(inner)
    app.wsgi_app = inner  # type: ignore[method-assign]


def emulation_headers(emulated_disk: int) -> tuple[tuple[str, str], ...]:
    """What every answer says of an emulated disk; nothing of a real one."""
    return (("X-Emulated-Disk", str(emulated_disk)),) if emulated_disk else ()


def _observed(application: Application, always: tuple[tuple[str, str], ...]) -> Application:
    now = time.perf_counter

    def observed(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        started = now()
        request_id = environ.get("HTTP_X_REQUEST_ID")
        if request_id is None or not _is_good_id(request_id):
            request_id = new_request_id()
        environ[REQUEST_ID] = request_id

        def start(status: str, headers: Headers, *more: Any) -> Any:
            took = f"total;dur={1000 * (now() - started):.3f}{environ.get(PARTS, '')}"
            headers += (("X-Request-ID", request_id), ("Server-Timing", took), *always)
            return start_response(status, headers, *more)

        return application(environ, start)

    return observed


# --- the access log ------------------------------------------------------------------------------


def _logged(application: Application) -> Application:
    def logged(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        started = time.perf_counter()
        begun = _Begun()

        def start(status: str, headers: Headers, *more: Any) -> Any:
            begun.status, begun.route = int(status[:3]), route_of(environ)
            return start_response(status, headers, *more)

        return _counted(application(environ, start), environ, begun, started)

    return logged


@dataclass(slots=True)
class _Begun:
    """An answer whose headers go out."""

    status: int = 500
    route: str | None = None


def _counted(
    pieces: Iterable[bytes], environ: Environ, begun: _Begun, started: float
) -> Iterator[bytes]:
    """`pieces`, and when they have gone out or broken off a line about them."""
    sent, is_whole = 0, False
    try:
        for piece in pieces:
            sent += len(piece)
            yield piece
        is_whole = True
    finally:
        if close := getattr(pieces, "close", None):
            close()
        write_line(
            request_id=environ.get(REQUEST_ID),
            method=environ["REQUEST_METHOD"],
            route=begun.route,
            query=environ.get("QUERY_STRING", "")[:MAX_LOGGED_CHARACTERS],
            status=begun.status,
            bytes=sent,
            duration_ms=round(1000 * (time.perf_counter() - started), 3),
            client=environ.get("REMOTE_ADDR"),
            is_whole=is_whole,
        )


def write_line(**members: object) -> None:
    """A line of the access log; a full disk or a closed pipe must not spoil the answer."""
    line = msgspec.json.encode({"time": datetime.now(UTC).isoformat(), **members})
    with suppress(OSError, ValueError):
        sys.stderr.flush()
        os.write(sys.stderr.fileno(), line + b"\n")  # in one piece, whoever else writes
