"""The pages as the web server serves them: their lanes, and what is said where no page can be made.

Styles, scripts and the sign of life are answered at once. Every other page asks the backend and
waits for it in a thread. Files of flights take long and have threads of their own, so that nobody
who adds a file keeps others from looking at pages.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from flask import Flask, Response

from frontend.app import HEADERS, MAX_BODY_BYTES
from frontend.errors import RETRY_AFTER_S
from frontend.plain_page import plain_page
from frontend.settings import Settings
from serving.environs import WAIT, Environ
from serving.front import Headers, Way, Wsgi
from serving.lanes import INLINE, Threads

PAGES, UPLOADS = "pages", "uploads"
UPLOAD_THREADS = 2
MOST_PAGES_WAITING, MOST_UPLOADS_WAITING = 100, 8
AT_ONCE = ("/static/", "/health/live")
UPLOAD_PATH = "/upload"
BUSY = "As many people as can be served wait already; try again in a few seconds"


class PagesSite:
    """A `serving.front.Site`."""

    def __init__(self, settings: Settings, app: Flask) -> None:
        self.max_body_bytes = MAX_BODY_BYTES
        self.lanes = {
            PAGES: Threads(PAGES, settings.threads, MOST_PAGES_WAITING),
            UPLOADS: Threads(UPLOADS, UPLOAD_THREADS, MOST_UPLOADS_WAITING),
        }
        self._application: Wsgi = app.wsgi_app

    def receive(self, environ: Environ) -> None:
        """Refuse nothing here: the application does it, under whatever server."""

    def way(self, environ: Environ) -> Way:
        """The lane of a request; the application answers them all."""
        path: str = environ["PATH_INFO"]
        if path.startswith(AT_ONCE):
            return Way(INLINE, self._application)
        is_upload = environ["REQUEST_METHOD"] == "POST" and path.startswith(UPLOAD_PATH)
        return Way(UPLOADS if is_upload else PAGES, self._application)

    def leave(self, environ: Environ) -> None:
        """Count nothing."""

    def dismiss(self, environ: Environ, status: str, headers: Headers) -> None:  # noqa: ARG002
        """Tell in Server-Timing how long a request has waited for a thread."""
        if wait := environ.get(WAIT):
            headers.append(("Server-Timing", wait.removeprefix(", ")))

    def log(self, environ: Environ, sent_bytes: int, *, is_whole: bool) -> None:
        """Log nothing."""

    def failed(self, error: Exception, environ: Environ) -> Wsgi:  # noqa: ARG002
        """Raise the error: no request here is in a group."""
        raise error

    def full(self, lane: str) -> Wsgi:  # noqa: ARG002
        """What somebody is told whose lane is full."""
        status = HTTPStatus.SERVICE_UNAVAILABLE
        headers = {**_headers(), "Retry-After": str(RETRY_AFTER_S)}
        return Response(plain_page(status, BUSY), status, headers)

    def unread(self, client: object, status: int, detail: str, **more: object) -> bytes:  # noqa: ARG002
        """The whole answer to what HTTP refuses, after which the connection ends."""
        body = plain_page(status, detail)
        headers = {**_headers(), "Content-Length": str(len(body)), "Connection": "close"}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = str(RETRY_AFTER_S)
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *_lines(headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + body

    def look(self) -> None:
        """Do nothing each second."""

    def stop(self) -> None:
        """Do nothing: no page waits for a block."""


def _headers() -> dict[str, str]:
    return {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", **HEADERS}


def _lines(headers: Iterable[tuple[str, Any]]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers]
