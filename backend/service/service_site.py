"""Tells the front which lane and which handler a request of the REST service goes to.

The table of routes decides both. A request that no row matches (an unknown address, another
method) goes to the Flask application, in the lane of long reads.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any

from backend.api import Service
from backend.api.observing import ROUTE
from backend.api.problems import whole_problem
from backend.api.routes import Lane, Match
from backend.base.settings import Settings, most_commit_waiters
from backend.serving.environs import Environ
from backend.serving.front import Route, Wsgi
from backend.serving.lanes import MOST_QUEUED, Threads

RETRY_AFTER_S = 5  # the Retry-After of a full lane
MOST_QUESTIONS = 100  # that wait; the slowest take tens of milliseconds each
LONG_NICENESS = 10  # of threads that only read, for long: all others go first


class ServiceSite:
    """The REST service as a `backend.serving.front.Site`.

    unmatched: lane of what no row matches.
    """

    unmatched = Lane.READ

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
        """Return the lane and the row of a request."""
        match = self._table.match(environ)
        if match is None:
            return Route(self.unmatched, self.service.flask)
        environ[ROUTE] = match.row.rule
        return Route(match.lane(environ), partial(self._by_row, match), match.row.group)

    def _by_row(
        self, match: Match, environ: Environ, start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer with the handler of the row, as a WSGI application does."""
        try:
            response = match.answer(environ)
        except Exception as error:  # noqa: BLE001  every error is answered
            response = self.failed(error, environ)
        return response(environ, start_response)

    @staticmethod
    @cache  # clients that are refused may ask again at once, and many at a time
    def full(lane: str) -> Wsgi:
        """Return the answer to a request whose lane is full."""
        detail = f"too many requests are waiting already for the lane {lane}; try again"
        return whole_problem(503, detail, ("Retry-After", str(RETRY_AFTER_S)))

    def tick(self) -> None:
        """Update the metrics; the front calls this again and again."""
        self.service.metrics.sample()

    def stop(self) -> None:
        """Answer the requests that wait for a block, because the worker stops."""
        self.service.ledger.submitter.stop_waiting()


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
