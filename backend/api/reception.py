"""Receives every request, whichever way it comes in, finalises its response, and logs it.

A request that is received gets its id. It is refused if it comes from another site or carries a
token in its address (see `backend.serving.host_policy`); nothing more is done for it then, but it
is counted and logged like all others. A response that is finalised gets the headers that all
answers have (see `observing`), and is counted with its duration.

`around` does all of this as a WSGI layer. The front, which may await answers, calls the steps, and
`reject` for what HTTP itself refuses before it could be read completely.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flask import Response

from backend.api.conditions import NO_STORE
from backend.api.metrics import CountedRequests
from backend.api.observing import (
    MAX_LOGGED_CHARACTERS,
    PARTS,
    REQUEST_ID,
    Headers,
    is_good_id,
    new_request_id,
    route_of,
    write_line,
)
from backend.api.problems import MIMETYPE, problem, problem_body
from backend.serving.environs import STARTED, WAIT, Environ
from backend.serving.host_policy import HostPolicy, Refusal, hide_query

REJECTED_RETRY_AFTER_S = 5  # as of a full lane: a batch that takes the room needs seconds
ANSWERED = "flightchain.answered"  # in the environ, for the log: status and route

Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Reception:
    """Receives the requests of one application.

    always: further headers of every answer. tells_start: answers say when they were begun.
    """

    def __init__(
        self,
        host_policy: HostPolicy,
        counted: CountedRequests,
        *,
        access_log: bool,
        always: tuple[tuple[str, str], ...] = (),
        tells_start: bool = False,
    ) -> None:
        self._host_policy = host_policy
        self._counted = counted
        self._always = always
        self._tells_start = tells_start
        self.access_log = access_log

    def receive(self, environ: Environ) -> Response | None:
        """Begin a request. Returns an answer if the request is refused. `leave` must follow."""
        environ[STARTED] = time.perf_counter()
        request_id = environ.get("HTTP_X_REQUEST_ID")
        if request_id is None or not is_good_id(request_id):
            request_id = new_request_id()
        environ[REQUEST_ID] = request_id
        self._counted.begin()
        refusal = self._host_policy.refusal(environ)
        return None if refusal is None else _refused(environ, refusal)

    def finalise_response(self, environ: Environ, status: str, headers: Headers) -> None:
        """Complete the headers of an answer that goes out. status: as WSGI has it, `200 OK`."""
        took_s = time.perf_counter() - environ[STARTED]
        timing = f"total;dur={1000 * took_s:.3f}{environ.get(PARTS, '')}{environ.get(WAIT, '')}"
        headers += (("X-Request-ID", environ[REQUEST_ID]), ("Server-Timing", timing), *self._always)
        if self._tells_start:  # perf_counter reads CLOCK_MONOTONIC on Linux
            headers.append(("X-Service-Start", f"{environ[STARTED]:.9f}"))
            headers.append(("X-Worker", str(os.getpid())))
        self._counted.answered(environ, status, took_s)
        if self.access_log:
            environ[ANSWERED] = int(status[:3]), route_of(environ)

    def leave(self, environ: Environ) -> None:  # noqa: ARG002  a front's site may need it
        """Note that the application has made its answer, or has failed to."""
        self._counted.end()

    def log(self, environ: Environ, sent_bytes: int, *, is_whole: bool) -> None:
        """Write a line of the access log, if it is on. is_whole: the body went out."""
        if not self.access_log:
            return
        status, route = environ.get(ANSWERED, (500 if is_whole else None, None))
        write_line(
            request_id=environ.get(REQUEST_ID),
            method=environ["REQUEST_METHOD"],
            route=route,
            query=environ.get("QUERY_STRING", "")[:MAX_LOGGED_CHARACTERS],
            status=status,
            bytes=sent_bytes,
            duration_ms=round(1000 * (time.perf_counter() - environ[STARTED]), 3),
            client=environ.get("REMOTE_ADDR"),
            is_whole=is_whole,
        )

    def reject(
        self, client: object, status: int, detail: str, **more: object
    ) -> tuple[Headers, bytes]:
        """Return headers and body for a request that HTTP refuses. client: the client's address."""
        self._counted.refused(status)
        body, request_id = problem_body(status, detail, **more), new_request_id()
        headers = [("Content-Type", MIMETYPE), ("Cache-Control", NO_STORE)]
        if status == 503:
            headers.append(("Retry-After", str(REJECTED_RETRY_AFTER_S)))
        headers += [("X-Request-ID", request_id), *self._always]
        if self.access_log:
            unknown = dict.fromkeys(("method", "route", "query", "duration_ms"))
            address = client[0] if isinstance(client, tuple) else None
            members = {"bytes": len(body), "client": address, "is_whole": True}
            write_line(request_id=request_id, status=status, **unknown, **members)
        return headers, body

    def around(self, application: Application) -> Application:
        """Return a WSGI application that receives each request and passes it to `application`."""

        def received(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            def start(status: str, headers: Headers, *more: Any) -> Any:
                self.finalise_response(environ, status, headers)
                return start_response(status, headers, *more)

            try:
                pieces = (self.receive(environ) or application)(environ, start)
            finally:
                self.leave(environ)
            return self._logged(pieces, environ) if self.access_log else pieces

        return received

    def _logged(self, pieces: Iterable[bytes], environ: Environ) -> Iterator[bytes]:
        """Pass `pieces` on, and write a log line when they have gone out or broken off."""
        sent, is_whole = 0, False
        try:
            for piece in pieces:
                sent += len(piece)
                yield piece
            is_whole = True
        finally:
            if close := getattr(pieces, "close", None):
                close()
            self.log(environ, sent, is_whole=is_whole)


def _refused(environ: Environ, refusal: Refusal) -> Response:
    hide_query(environ)
    return problem(refusal.status, refusal.detail, field=refusal.field)
