"""The known server: it sleeps for as long as a request says, to check the lab's own instruments.

`GET /?service_s=0.0405` is served for that many seconds and answered with JSON; without the
parameter for `DEFAULT_S`. Other paths are answered with 404, and a time that is not a number with
400. With `&status=503` the answer has that status after the service. Headers report when the
handler began, how long it took and in which process (`loadtests.servers.timing`).

A sleeping server uses no processor. With one worker it is first come, first served; m workers or
threads are m servers behind one queue. Sleeps end about 0.1 ms late; each thread shortens its next
sleep by that, so that the mean is right.

    with known_server(FCFS, log=folder / "server.log") as server:
        server.url, server.pid
"""

import json
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import parse_qs

from loadtests.processes import HOST, Service, free_port, plain_environment, serving
from loadtests.servers.timing import headers

TIMEOUT_S = 3600  # gunicorn's default of 30 would kill a worker during a long request
LONGEST_S = 3600.0
DEFAULT_S = 0.01

StartResponse = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Gunicorn:
    """Settings of gunicorn.

    worker_class: `sync`, `gthread` or `asgi`. threads: number in each gthread worker. options:
    further options of the command line.
    """

    worker_class: str = "sync"
    workers: int = 1
    threads: int = 1
    timeout_s: int = TIMEOUT_S
    options: tuple[str, ...] = ()

    def command(self, application: str, port: int) -> list[str]:
        """The command line. application: `module:name` or `module:factory(arguments)`."""
        return [
            *(sys.executable, "-m", "gunicorn", "--bind", f"{HOST}:{port}"),
            *("--worker-class", self.worker_class, "--workers", str(self.workers)),
            *("--threads", str(self.threads), "--timeout", str(self.timeout_s)),
            *("--graceful-timeout", "2", "--worker-tmp-dir", "/dev/shm"),  # noqa: S108
            *("--no-control-socket", "--log-level", "warning"),
            *self.options,
            application,
        ]


FCFS = Gunicorn("sync", workers=1)


def m_workers(count: int) -> Gunicorn:
    """`count` processes behind one queue: m servers, FCFS."""
    return Gunicorn("sync", workers=count)


def gunicorn_server(
    application: str, how: Gunicorn, log: Path, asking: str = "/"
) -> AbstractContextManager[Service]:
    """Run an application under gunicorn on a free loopback port, until the `with` block ends.

    application: as in `Gunicorn.command`. asking: the path that it must answer with JSON and status
    200 before the block begins. Raises ProgramFailed if it does not start.
    """
    port = free_port()
    return serving(how.command(application, port), port, log, asking, plain_environment())


def known_server(how: Gunicorn, log: Path) -> AbstractContextManager[Service]:
    """Run a known server. Raises ProgramFailed."""
    return gunicorn_server("loadtests.servers.known:application", how, log, asking="/?service_s=0")


class Sleeper:
    """Sleeps so that the total of each thread's sleeps is exact."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def __call__(self, demand_s: float) -> None:
        """Sleep `demand_s` seconds, less what this thread's last sleep was too long."""
        owed_s = demand_s - getattr(self._thread, "too_long_s", 0.0)
        start_s = monotonic()
        if owed_s > 0:
            sleep(owed_s)
        self._thread.too_long_s = monotonic() - start_s - owed_s


_serve = Sleeper()


class _Refused(Exception):
    """A request is wrong. Attribute: `status`."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def application(environ: dict[str, Any], start_response: StartResponse) -> list[bytes]:
    """The WSGI application."""
    start_s = monotonic()
    try:
        demand_s, status = _asked(environ)
        _serve(demand_s)
        said: dict[str, object] = {"service_s": demand_s}
    except _Refused as refused:
        status, said = refused.status, {"detail": str(refused)}
    body = json.dumps(said).encode()
    kind = ("Content-Type", "application/json")
    length = ("Content-Length", str(len(body)))
    start_response(status, [kind, length, *headers(start_s)])
    return [body]


def _asked(environ: dict[str, Any]) -> tuple[float, str]:
    """The service demand in seconds and the status to answer with. Raises _Refused."""
    if environ["PATH_INFO"] != "/":
        raise _Refused("404 Not Found", f"there is nothing at {environ['PATH_INFO']}")
    query = parse_qs(environ["QUERY_STRING"])
    (text,) = query.get("service_s", [str(DEFAULT_S)])[:1]
    try:
        demand_s = float(text)
    except ValueError:
        demand_s = -1.0
    if not 0 <= demand_s <= LONGEST_S:
        raise _Refused(
            "400 Bad Request", f"service_s is {text!r}; it must be seconds from 0 to {LONGEST_S:g}"
        )
    return demand_s, f"{query.get('status', ['200'])[0]} Chosen"
