"""Runs the web server of the REST service: gunicorn with its workers, in this process.

`ServiceSite` is what they serve.
"""

import math
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from flask import Response

from backend.api import SERVICE, Service
from backend.api.observing import ROUTE
from backend.api.problems import problem
from backend.api.routes import Lane
from backend.base.errors import FlightchainError
from backend.base.processes.parent_death import die_with_parent
from backend.base.processes.shared_numbers import run_folder
from backend.base.settings import Settings, most_commit_waiters
from backend.serving import gunicorn_app
from backend.serving.environs import Environ
from backend.serving.front import Front, Route, Wsgi
from backend.serving.lanes import MOST_QUEUED, Threads

LONGEST_REQUEST_S = 120
RETRY_AFTER_S = 5  # the Retry-After of a full lane
MOST_QUESTIONS = 100  # that wait; the slowest take tens of milliseconds each
LONG_NICENESS = 10  # of threads that only read, for long: all others go first


def run_http(settings: Settings) -> None:
    """Run gunicorn in this process until it is told to stop."""
    with run_folder(settings) as metrics_folder:
        gunicorn_app.run(partial(_loaded, settings), gunicorn_options(settings, metrics_folder))


def _loaded(settings: Settings) -> Any:
    service = Service(settings, restart=lambda: os.kill(os.getpid(), signal.SIGTERM))
    if settings.worker_type != "asgi":
        return service.application
    return front_of(service)


def front_of(service: Service) -> Front:
    """Make the front of a service; metrics show its lanes, and scans make way for others."""
    front = Front(ServiceSite(service))
    service.metrics.watch(front.numbers)
    service.ledger.cached_blocks.yield_to_short_requests = partial(
        front.yield_to_short_requests, Lane.THREAD, Lane.QUESTION
    )
    return front


def gunicorn_options(settings: Settings, metrics_folder: Path | None) -> dict[str, Any]:
    """Return the options of gunicorn that differ from `gunicorn_app.COMMON`, or are not in it."""
    options = {
        "bind": gunicorn_app.bind_address(settings.host, settings.port),
        "workers": settings.workers,
        "post_fork": lambda arbiter, worker: die_with_parent(signal.SIGKILL),  # no handler can hang
        "post_worker_init": lambda worker: _begin(worker, metrics_folder),
    }
    if settings.worker_type == "asgi":
        return options
    # With more than one thread, gunicorn would make a gthread worker of a sync one.
    threads = 1 if settings.worker_type == "sync" else settings.threads
    return options | {
        "worker_class": settings.worker_type,
        "threads": threads,
        "timeout": _silent_s(settings),
        "worker_exit": _end,
    }


def _silent_s(settings: Settings) -> int:
    """Return how many seconds a worker of another type may be silent before it counts as hanging.

    A `sync` worker has no loop, and is silent while it answers a request.
    """
    if settings.worker_type == "sync":
        return max(LONGEST_REQUEST_S, math.ceil(settings.commit_wait_s) + gunicorn_app.SILENT_S)
    return gunicorn_app.SILENT_S


def _begin(worker: Any, metrics_folder: Path | None) -> None:
    application = worker.wsgi
    is_front = isinstance(application, Front)
    service = application.site.service if is_front else application.extensions[SERVICE]
    if metrics_folder is not None:
        service.metrics.share(metrics_folder)
    if not is_front:  # a front answers waiting requests by itself
        _let_waiters_go_at_the_end(service)


def _end(arbiter: Any, worker: Any) -> None:  # noqa: ARG001  gunicorn's name for it
    """Close the ledger of a worker, as a front does by itself."""
    if hasattr(worker, "wsgi"):  # in the process of the worker, and not in gunicorn's own
        worker.wsgi.extensions[SERVICE].ledger.close()


def _let_waiters_go_at_the_end(service: Any) -> None:
    """Make a new worker answer the requests that wait for a block when it is told to stop."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        of_gunicorn = signal.getsignal(number)

        def handle(received: int, frame: Any, then: Any = of_gunicorn) -> None:
            service.ledger.submitter.stop_waiting()
            if callable(then):
                then(received, frame)

        signal.signal(number, handle)


class ServiceSite:
    """The REST service as a `backend.serving.front.Site`.

    The table of routes tells the front which lane and which handler a request goes to. A request
    that no row matches (an unknown address, another method) goes to the Flask application.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.max_body_bytes = service.settings.max_body_bytes
        self.max_body_bytes_in_memory = self.max_body_bytes
        self.lanes: Mapping[Any, Threads] = lanes_of(service.settings)
        self._table = service.table
        reception = service.reception
        self.receive, self.finalise_response = reception.receive, reception.finalise_response
        self.leave, self.log, self.reject = reception.leave, reception.log, reception.reject
        self.failed = service.problems.answer

    def route(self, environ: Environ) -> Route:
        match = self._table.match(environ)
        if match is None:
            return Route(Lane.READ, self.service.flask)
        row, parameters = match
        environ[ROUTE] = row.rule
        try:
            given = row.operation.given(environ)
            lane = row.lane_of(environ, given, parameters)
        except (FlightchainError, OSError) as error:
            return Route(Lane.READ, self.failed(error, environ))
        handler = partial(row.handler, environ, given, **parameters)
        return Route(lane, partial(self._answer, handler), row.group)

    def _answer(
        self,
        handler: Callable[[], Response],
        environ: Environ,
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        try:
            response = handler()
        except Exception as error:  # noqa: BLE001  every error is answered
            response = self.failed(error, environ)
        return response(environ, start_response)

    @staticmethod
    @cache  # clients that are refused may ask again at once, and many at a time
    def full(lane: str) -> Wsgi:
        detail = f"too many requests are waiting already for the lane {lane}; try again"
        return problem(503, detail, ("Retry-After", str(RETRY_AFTER_S)))

    def tick(self) -> None:
        """Update the metrics; the front calls this again and again."""
        self.service.metrics.sample()

    def stop(self) -> None:
        """Answer the requests that wait for a block, because the worker stops."""
        self.service.ledger.submitter.stop_waiting()

    def close(self) -> None:
        """Sync what was accepted without a sync: the thread for that ends with the worker."""
        self.service.ledger.close()


def lanes_of(settings: Settings) -> dict[Lane, Threads]:
    """Return the lanes of one worker that have threads."""
    count, queue = settings.lane_threads, settings.lane_queue
    # One more thread answers requests at once that find no place to wait.
    committing = most_commit_waiters(settings) + 1
    lanes = (
        Threads(Lane.THREAD, settings.threads, MOST_QUEUED),
        Threads(Lane.QUESTION, count, MOST_QUESTIONS),
        Threads(Lane.READ, count, MOST_QUEUED),
        Threads(Lane.SCAN, count, queue, LONG_NICENESS),
        Threads(Lane.EXPORT, count, queue, LONG_NICENESS),
        Threads(Lane.BATCH, count, queue),  # which holds locks that single posts wait for
        Threads(Lane.COMMIT, committing, queue),
    )
    return {Lane(threads.lane): threads for threads in lanes}
