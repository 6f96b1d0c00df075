"""A server of known service time: what is measured on it can be compared with queueing theory.

`GET /?service_s=0.0405` is served for so long and answered with JSON; without the parameter the
time is drawn from a gamma distribution (cv 0: deterministic, 1: exponential). Other addresses are
404, a demand that is no number is 400, and `&status=503` answers so after serving. Headers tell
when the handler began, how long it took and in which process (`loadtests.servers.timing`).

How a request is served decides which model fits:
- `sleep`: the time passes without using a processor. With one worker that is FCFS. A sleep ends
  late by some 0.1 ms; each thread takes what it owes off its next sleep, so that the mean is right.
- `burn`: until its thread has used so much processor time. Many threads share one interpreter and
  so one processor in turns of some milliseconds: processor sharing.

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

TIMEOUT_S = 3600  # gunicorn's default of 30 would kill a worker within a long request
LONGEST_S = 3600.0
BURN_STEPS = 200

StartResponse = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Gunicorn:
    """How gunicorn serves.

    worker_class: `sync`, `gthread` or `asgi`. threads: of each gthread worker. options: further
    options of its command line.
    """

    worker_class: str = "sync"
    workers: int = 1
    threads: int = 1
    timeout_s: int = TIMEOUT_S
    options: tuple[str, ...] = ()

    def command(self, application: str, port: int) -> list[str]:
        """What to run. application: `module:name` or `module:factory(arguments)`."""
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
    """`count` threads of one process behind one queue: m servers, FCFS, when they sleep."""
    return Gunicorn("gthread", threads=count)


def gunicorn_server(
    application: str, how: Gunicorn, log: Path, asking: str = "/"
) -> AbstractContextManager[Service]:
    """Any application under gunicorn on a free port of the loopback address, ended at last.

    application: as in `Gunicorn.command`. asking: what it has answered with JSON and status 200
    before it is given. Raises ProgramFailed if it does not come up.
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
    """The server of this module. mean_s, cv, seed: for requests that do not say their time.

    With several workers each draws from a seed of its own. Raises ValueError, ProgramFailed.
    """
    application(mode, mean_s, cv, seed)  # raises for what is wrong with the arguments
    made = f"loadtests.servers.known:application({mode!r}, {mean_s!r}, {cv!r}, {seed!r})"
    return gunicorn_server(made, how, log, asking="/?service_s=0")


class Sleeper:
    """Sleeps so that what a thread sleeps in all is what it was asked for."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def __call__(self, demand_s: float) -> None:
        """Sleep `demand_s` seconds, less what this thread slept too long before."""
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
    """A request that is not understood. Attribute: `status`."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def application(mode: str, mean_s: float, cv: float, seed: int) -> Application:
    """The WSGI application. Raises ValueError for what cannot be."""
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
    """Demands of the configured distribution; drawn in each process from a seed of its own."""

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
        raise _Refused("400 Bad Request", f"service_s is {text!r}; seconds from 0 to {LONGEST_S:g}")
    return demand_s, status
