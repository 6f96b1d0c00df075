"""The pages as the web server serves them: their lanes, and answers where no page can be made.

Styles, scripts and the sign of life are answered at once. Every other page asks the backend and
waits for it in a thread. Files of flights take long, and so do questions that are answered by a
scan and proofs of answers, for which the service reads all blocks: files have threads of their own,
and so have the other two, so that no other page waits for them.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from flask import Flask, Response

from backend.serving import gunicorn_app
from backend.serving.environs import WAIT, Environ
from backend.serving.front import Front, Headers, Route, Site, Wsgi
from backend.serving.lanes import INLINE, Threads
from frontend.app import HEADERS, create_app
from frontend.bodies import FORM_BYTES, NO_ROOM, TAKES_FILES
from frontend.errors import RETRY_AFTER_S
from frontend.question import KINDS
from frontend.request_guard import plain_page, problem_with_body
from frontend.settings import COMMAND, Settings

PAGES, SCANS, UPLOADS = "pages", "scans", "uploads"
LONG_THREADS = 2  # so many for scans and proofs of answers, and so many for uploads
MOST_PAGES_WAITING, MOST_LONG_WAITING = 100, 8
AT_ONCE = ("/static/", "/health/live")
MOST_FILES = LONG_THREADS + MOST_LONG_WAITING
HAS_PLACE = "flightchain.has_place"  # in the environ: its request is one of so many with a file
UNBOUNDED = 2**62
SCAN = "engine=scan"
PROOFS_OF_ANSWERS = tuple(f"/{name}/proof" for name in KINDS)
BUSY = "too many requests are waiting already; try again in a few seconds"
BUSY_WITH_FILES = (
    "too many files are being received already, so this one was not read and nothing was added; go "
    "back and send it again in a few seconds"
)
SHORTER = (
    "Nothing was added. With JavaScript the page /upload sends longer files; on the ledger's "
    f"machine, {COMMAND} import FILE adds them"
)


class PagesSite(Site):
    """The pages, and how requests for them are answered."""

    def __init__(self, settings: Settings, app: Flask) -> None:
        self.max_body_bytes = UNBOUNDED  # `receive` judges the length of each, by its page
        self.max_body_bytes_in_memory = FORM_BYTES
        self._max_file_bytes = settings.max_body_bytes
        self._files = 0  # how many requests with a file are here, in full or in part
        self.lanes: Mapping[Any, Threads] = {
            PAGES: Threads(PAGES, settings.threads, MOST_PAGES_WAITING),
            SCANS: Threads(SCANS, LONG_THREADS, MOST_LONG_WAITING),
            UPLOADS: Threads(UPLOADS, LONG_THREADS, MOST_LONG_WAITING),
        }
        self._application: Wsgi = app.wsgi_app

    def receive(self, environ: Environ) -> Wsgi | None:
        """Have the application refuse bodies by their heads, and bound the number of files."""
        if problem_with_body(environ, self._max_file_bytes):
            return self._application
        if _is_file(environ):
            if self._files >= MOST_FILES:
                return self.full(UPLOADS)
            environ[HAS_PLACE] = True
            self._files += 1
        return None

    def route(self, environ: Environ) -> Route:
        """Return the lane of a request; all of them are answered by the application."""
        path: str = environ["PATH_INFO"]
        if path.startswith(AT_ONCE):
            return Route(INLINE, self._application)
        lane = PAGES
        if SCAN in environ["QUERY_STRING"] or path in PROOFS_OF_ANSWERS:
            lane = SCANS
        elif _is_file(environ):
            lane = UPLOADS
        return Route(lane, self._application)

    def leave(self, environ: Environ) -> None:
        if environ.pop(HAS_PLACE, False):
            self._files -= 1

    def finalise_response(self, environ: Environ, status: str, headers: Headers) -> None:  # noqa: ARG002
        """Tell in Server-Timing how long a request has waited for a thread."""
        if wait := environ.get(WAIT):
            headers.append(("Server-Timing", wait.removeprefix(", ")))

    def failed(self, error: Exception, environ: Environ) -> Wsgi:  # noqa: ARG002
        logging.getLogger(__name__).error("cannot keep what was posted: %s", error)
        return _problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{NO_ROOM}; nothing was added")

    def full(self, lane: str) -> Wsgi:
        return _problem(
            HTTPStatus.SERVICE_UNAVAILABLE, BUSY_WITH_FILES if lane == UPLOADS else BUSY
        )

    def reject(
        self,
        client: object,  # noqa: ARG002
        status: int,
        detail: str,
        **more: object,  # noqa: ARG002
    ) -> tuple[Headers, bytes]:
        if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            detail = f"{detail}. {SHORTER}"
        return list(_headers(status).items()), plain_page(status, detail)


def _is_file(environ: Environ) -> bool:
    return environ["REQUEST_METHOD"] == "POST" and environ["PATH_INFO"] in TAKES_FILES


def _problem(status: int, detail: str) -> Response:
    return Response(plain_page(status, detail), status, _headers(status))


def _headers(status: int) -> dict[str, str]:
    kind = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", **HEADERS}
    is_later = status == HTTPStatus.SERVICE_UNAVAILABLE
    return {**kind, "Retry-After": str(RETRY_AFTER_S)} if is_later else kind


def run(settings: Settings) -> None:
    """Serve the pages from one process, which waits for the backend most of the time."""

    def load() -> Front:
        return Front(PagesSite(settings, create_app(settings)))

    bind = gunicorn_app.bind_address(settings.host, settings.port)
    gunicorn_app.run(load, {"bind": bind, "workers": 1})
