"""A server of known service time, to compare measurements on it with queueing theory.

`GET /?service_s=0.0405` is served for that many seconds and answered with JSON; without the
parameter the time is drawn from a gamma distribution (cv 0: deterministic, 1: exponential). Other
paths are answered with 404, and a time that is not a number with 400. With `&status=503` the answer
has that status after the service. Headers report when the handler began, how long it took and in
which process (`loadtests.servers.timing`).

The mode of service decides which model fits:
- `sleep`: the server sleeps and uses no processor. With one worker that is FCFS. Sleeps end about
  0.1 ms late; each thread shortens its next sleep by that, so that the mean is right.
- `burn`: the thread computes until it has used that much processor time. Many threads share one
  interpreter, and so one processor, in turns of some milliseconds: processor sharing.


    with known_server(FCFS, log=folder / "server.log") as server:
        server.url, server.pid
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic, sleep, thread_time
from typing import Any
from urllib.parse import parse_qs

from loadtests.generation.schedule import gamma_demands
from loadtests.processes import HOST, Service, free_port, plain_environment, serving
from loadtests.servers.timing import headers

TIMEOUT_S = 3600  # gunicorn's default of 30 would kill a worker during a long request
LONGEST_S = 3600.0
BURN_STEPS = 200

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
PROCESSOR_SHARING = Gunicorn("gthread", threads=64)


def m_workers(count: int) -> Gunicorn:
    """`count` processes behind one queue: m servers, FCFS."""
    return Gunicorn("sync", workers=count)


def m_threads(count: int) -> Gunicorn:
    """`count` threads of one process behind one queue: m servers, FCFS, in mode `sleep`."""
    return Gunicorn("gthread", threads=count)


def gunicorn_server(
    application: str, how: Gunicorn, log: Path, asking: str = "/"
) -> AbstractContextManager[Service]:
    """Run an application under gunicorn on a free loopback port, until the `with` block ends.

    application: as in `Gunicorn.command`. asking: the path that it must answer with JSON and status
    200 before the block begins. Raises ProgramFailed if it does not start.
    """
    port = free_port()
    return serving(how.command(application, port), port, log, asking, plain_environment())


def known_server(
    how: Gunicorn,
    log: Path,
    mode: str = "sleep",
    mean_s: float = 0.0405,
    cv: float = 0.0,
    seed: int = 1,
) -> AbstractContextManager[Service]:
    """Run a server of known service time. mean_s, cv, seed: for requests without a time.

    Each worker process draws from a seed of its own. Raises ValueError, ProgramFailed.
    """
    application(mode, mean_s, cv, seed)  # raises ValueError for wrong arguments
    made = f"loadtests.servers.known:application({mode!r}, {mean_s!r}, {cv!r}, {seed!r})"
    return gunicorn_server(made, how, log, asking="/?service_s=0")


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


def burn(demand_s: float) -> None:
    """Use `demand_s` seconds of processor time in this thread."""
    end_s = thread_time() + demand_s
    while thread_time() < end_s:
        for _ in range(BURN_STEPS):
            pass


_MODES: dict[str, Callable[[], Callable[[float], None]]] = {"sleep": Sleeper, "burn": lambda: burn}


class _Refused(Exception):
    """A request is wrong. Attribute: `status`."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def application(mode: str, mean_s: float, cv: float, seed: int) -> Application:
    """The WSGI application. Raises ValueError for wrong arguments."""
    if mode not in _MODES:
        raise ValueError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    gamma_demands(mean_s, cv, Random(seed))  # noqa: S311  a load, no secrets
    serve, drawn = _MODES[mode](), _Drawn(mean_s, cv, seed)

    def answer(environ: dict[str, Any], start_response: StartResponse) -> list[bytes]:
        start_s = monotonic()
        try:
            demand_s, status = _asked(environ, drawn)
            serve(demand_s)
            said: dict[str, object] = {"service_s": demand_s}
        except _Refused as refused:
            status, said = refused.status, {"detail": str(refused)}
        body = json.dumps(said).encode()
        kind = ("Content-Type", "application/json")
        length = ("Content-Length", str(len(body)))
        start_response(status, [kind, length, *headers(start_s)])
        return [body]

    return answer


class _Drawn:
    """Draws demands of the configured distribution. Each process has a seed of its own."""

    def __init__(self, mean_s: float, cv: float, seed: int) -> None:
        self._law, self._seed = (mean_s, cv), seed
        self._demands_s: Iterator[float] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            if self._demands_s is None:
                self._demands_s = gamma_demands(*self._law, Random(f"{self._seed}/{os.getpid()}"))  # noqa: S311  a load, no secrets
            return next(self._demands_s)


def _asked(environ: dict[str, Any], drawn: Callable[[], float]) -> tuple[float, str]:
    """The service demand in seconds and the status to answer with. Raises _Refused."""
    if environ["PATH_INFO"] != "/":
        raise _Refused("404 Not Found", f"there is nothing at {environ['PATH_INFO']}")
    query = parse_qs(environ["QUERY_STRING"])
    status = f"{query.get('status', ['200'])[0]} Chosen"
    if "service_s" not in query:
        return drawn(), status
    text = query["service_s"][0]
    try:
        demand_s = float(text)
    except ValueError:
        demand_s = -1.0
    if not 0 <= demand_s <= LONGEST_S:
        raise _Refused(
            "400 Bad Request", f"service_s is {text!r}; it must be seconds from 0 to {LONGEST_S:g}"
        )
    return demand_s, status
