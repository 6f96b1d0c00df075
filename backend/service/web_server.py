"""Runs the web server of the REST service: gunicorn with its workers, in this process."""

import math
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

from backend.api import SERVICE, Service
from backend.api.routes import Lane
from backend.base.processes.parent_death import die_with_parent
from backend.base.processes.shared_numbers import run_folder
from backend.base.settings import Settings
from backend.service.service_site import ServiceSite
from backend.serving import gunicorn_app
from backend.serving.front import Front

LONGEST_REQUEST_S = 120


def run_http(settings: Settings) -> None:
    """Run gunicorn in this process until it is told to stop."""
    with run_folder(settings) as metrics_folder:
        gunicorn_app.run(partial(_loaded, settings), gunicorn_options(settings, metrics_folder))


def _loaded(settings: Settings) -> Any:
    """Load what the workers serve."""
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
    silent_s = _silent_s(settings)
    return options | {"worker_class": settings.worker_type, "threads": threads, "timeout": silent_s}


def _silent_s(settings: Settings) -> int:
    """Return how many seconds a worker of another type may be silent before it counts as hanging.

    A `sync` worker has no loop, and is silent while it answers a request.
    """
    if settings.worker_type == "sync":
        return max(LONGEST_REQUEST_S, math.ceil(settings.commit_wait_s) + gunicorn_app.SILENT_S)
    return gunicorn_app.SILENT_S


def _begin(worker: Any, metrics_folder: Path | None) -> None:
    """Prepare a new worker, before it answers requests."""
    application = worker.wsgi
    is_front = isinstance(application, Front)
    service = application.site.service if is_front else application.extensions[SERVICE]
    if metrics_folder is not None:
        service.metrics.share(metrics_folder)
    if not is_front:  # a front answers waiting requests by itself
        _let_waiters_go_at_the_end(service)


def _let_waiters_go_at_the_end(service: Any) -> None:
    """Make a new worker answer the requests that wait for a block when it is told to stop."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        of_gunicorn = signal.getsignal(number)

        def handle(received: int, frame: Any, then: Any = of_gunicorn) -> None:
            service.ledger.submitter.stop_waiting()
            if callable(then):
                then(received, frame)

        signal.signal(number, handle)
