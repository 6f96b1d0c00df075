"""Two servers that do almost nothing, to compare the speed of the service with.

- `empty_asgi`: an empty ASGI application on gunicorn's own `asgi` worker with uvloop, on which the
  service runs, too. No application on this server is faster, so this is the limit.
- `flask_view`: one Flask view that returns constant JSON, on gunicorn's `gthread` worker, as the
  usual Flask service is before it does any work.

Both answer every path that the benchmark requests with 200, without logging.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadtests.processes import Service
from loadtests.servers.gunicorn import Gunicorn, gunicorn_server

if TYPE_CHECKING:
    from flask import Flask

WORKERS = 2  # as many as the service has by default
FLASK_THREADS = 8  # number in each worker

_BODY = b'{"status":"ok"}'
_HEADERS = (
    (b"content-type", b"application/json"),
    (b"content-length", str(len(_BODY)).encode()),
)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def empty_asgi(log: Path) -> AbstractContextManager[Service]:
    """The limit: an empty ASGI application on a free port, until the end of the `with` block."""
    options = ("--asgi-loop", "uvloop", "--asgi-lifespan", "off")
    how = Gunicorn("asgi", workers=WORKERS, options=options)
    return gunicorn_server("loadtests.servers.bare:answer", how, log)


def flask_view(log: Path) -> AbstractContextManager[Service]:
    """A bare Flask view on a free port, until the end of the `with` block."""
    how = Gunicorn("gthread", workers=WORKERS, threads=FLASK_THREADS)
    return gunicorn_server("loadtests.servers.bare:flask_application()", how, log)


async def answer(_scope: Mapping[str, Any], _receive: Receive, send: Send) -> None:
    """The empty ASGI application, which answers every request with the same few bytes."""
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})


def flask_application() -> "Flask":
    """The Flask application with its one view."""
    from flask import Flask

    application = Flask(__name__)

    @application.get("/")
    def view() -> dict[str, str]:
        return {"status": "ok"}

    return application
