"""Runs the lab's servers under gunicorn: m workers, or m threads of one, are m behind one queue.

Two of them do almost nothing, for comparisons: they answer every path that the benchmark requests
with 200, without logging.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadtests.processes import HOST, Service, free_port, plain_environment, serving

if TYPE_CHECKING:
    from flask import Flask

UVICORN = "uvicorn_worker.UvicornWorker"  # takes httptools and uvloop where they are installed
TIMEOUT_S = 3600  # gunicorn's default of 30 would kill a worker during a long request


@dataclass(frozen=True, slots=True)
class Gunicorn:
    """Holds settings of gunicorn.

    worker_class: `sync`, `gthread` or UVICORN. With `sync` each worker is first come, first served.
    threads: number in each gthread worker.
    """

    worker_class: str = "sync"
    workers: int = 1
    threads: int = 1

    def command(self, application: str, port: int) -> list[str]:
        """Return the command line. application: `module:name` or `module:factory(arguments)`."""
        return [
            *(sys.executable, "-m", "gunicorn", "--bind", f"{HOST}:{port}"),
            *("--worker-class", self.worker_class, "--workers", str(self.workers)),
            *("--threads", str(self.threads), "--timeout", str(TIMEOUT_S)),
            *("--graceful-timeout", "2", "--worker-tmp-dir", "/dev/shm"),  # noqa: S108
            *("--no-control-socket", "--log-level", "warning"),
            application,
        ]


FCFS = Gunicorn("sync", workers=1)


def gunicorn_server(
    application: str, how: Gunicorn, log: Path, asking: str = "/"
) -> AbstractContextManager[Service]:
    """Run an application under gunicorn on a free loopback port, until the `with` block ends.

    application: as in `Gunicorn.command`. asking: the path that is answered with JSON and status
    200 when it begins. Raises ProgramFailed if it does not start.
    """
    port = free_port()
    return serving(how.command(application, port), port, log, asking, plain_environment())


WORKERS = 2  # as many as the service has by default
FLASK_THREADS = 8  # number in each worker

_BODY = b'{"status":"ok"}'
_HEADERS = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY)))

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def empty_asgi(log: Path) -> AbstractContextManager[Service]:
    """Run an empty ASGI application on the service's kind of worker: no application is faster."""
    how = Gunicorn(UVICORN, workers=WORKERS)
    return gunicorn_server("loadtests.servers.gunicorn:answer", how, log)


def flask_view(log: Path) -> AbstractContextManager[Service]:
    """Run a Flask view of constant JSON, as the usual Flask service is before it does any work."""
    how = Gunicorn("gthread", workers=WORKERS, threads=FLASK_THREADS)
    return gunicorn_server("loadtests.servers.gunicorn:flask_application()", how, log)


async def answer(_scope: Mapping[str, Any], _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})


def flask_application() -> "Flask":
    from flask import Flask

    application = Flask(__name__)

    @application.get("/")
    def view() -> dict[str, str]:
        return {"status": "ok"}

    return application
