"""Answers errors with `application/problem+json`, for every route and every status."""

import logging
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.http import HTTP_STATUS_CODES

from backend.api.body_types import Error
from backend.api.conditions import NO_STORE
from backend.api.observing import REQUEST_ID
from backend.api.reading import BadBody
from backend.api.responses import Pair, Whole
from backend.base.errors import (
    BadRow,
    Damage,
    DamagedBlock,
    FlightchainError,
    InvalidFlight,
    InvalidInput,
    InvalidQuery,
    KeyReused,
    NotAllowed,
    NotFound,
    PlacesTaken,
    TryLater,
    WriteFailed,
    WriterBusy,
    excerpt,
)
from backend.chain.flight import MOST_ERRORS
from backend.chain.json_objects import Json
from backend.serving.environs import Environ

MIMETYPE = "application/problem+json"
RETRY_AFTER_S = 5  # after an error that a person may have to repair
LOG_EVERY_S = 1.0  # errors of one kind: the log is not filled by clients that try again at once

_log = logging.getLogger(__name__)

STATUS: tuple[tuple[type[FlightchainError], int], ...] = (
    (InvalidQuery, 400),
    (InvalidFlight, 422),
    (BadRow, 422),
    (KeyReused, 422),
    (NotAllowed, 401),
    (NotFound, 404),
    (TryLater, 503),
    (WriteFailed, 503),
    (WriterBusy, 503),
    (Damage, 503),
    (FlightchainError, 500),
)


class InvalidFlights(InvalidFlight):
    """A flight or a batch with errors. The exception itself tells the first of `problems`.

    members: further members of the answer.
    """

    def __init__(self, problems: Sequence[InvalidInput], **members: object) -> None:
        first = problems[0]
        super().__init__(first.field, first.value, first.reason, **members)
        self.problems = problems


def problem_body(status: int, detail: str, **more: object) -> bytes:
    """Return a problem in JSON. more: further members, such as field and value."""
    title = HTTP_STATUS_CODES[status]  # of Werkzeug, as Python's depend on its version
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return msgspec.json.encode(body)


def problem(status: int, detail: str, *pairs: Pair, **more: object) -> Response:
    """Return a problem response. pairs: further headers. more: as in `problem_body`."""
    kind, control = ("Content-Type", MIMETYPE), ("Cache-Control", NO_STORE)
    return Whole(problem_body(status, detail, **more), kind, control, *pairs, status=status)


class Problems:
    """Answers every error with a problem, and calls `restart` after a failed write."""

    def __init__(self, restart: Callable[[], None]) -> None:
        self._restart = restart
        self._logged_s: dict[type[Exception], float] = {}

    def answer(self, error: Exception, environ: Environ) -> Response:
        if isinstance(error, HTTPException):
            return _of_http(error)
        if isinstance(error, WriteFailed):
            self._restart()  # a new process reads the files again, when this is answered
        request_id = environ.get(REQUEST_ID)
        if not isinstance(error, FlightchainError | OSError):
            _log.exception("unexpected error (request %s)", request_id, exc_info=error)
            return problem(500, "the service failed; its log says why")
        response = _ours(error) if isinstance(error, FlightchainError) else _of_system(error)
        if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR and self._is_logged(error):
            _log.error("%s (request %s)", error, request_id)
        return response

    def _is_logged(self, error: Exception) -> bool:
        """Return whether to log an error. A full lane is none, and others may come often."""
        now_s, before_s = time.monotonic(), self._logged_s.get(type(error), -LOG_EVERY_S)
        if isinstance(error, PlacesTaken) or now_s < before_s + LOG_EVERY_S:
            return False
        self._logged_s[type(error)] = now_s
        return True

    def install(self, app: Flask) -> None:
        app.register_error_handler(Exception, lambda error: self.answer(error, request.environ))


def _ours(error: FlightchainError) -> Response:
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    if isinstance(error, BadBody):
        status = error.status
    pairs: list[Pair] = []
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        retry_after_s = error.retry_after_s if isinstance(error, TryLater) else RETRY_AFTER_S
        pairs = [("Retry-After", str(retry_after_s))]
    elif isinstance(error, NotAllowed):
        pairs = [("WWW-Authenticate", "Bearer")]
    return problem(status, str(error), *pairs, **_members(error))


def _members(error: FlightchainError) -> Json:
    if isinstance(error, DamagedBlock):
        return {"damaged_blocks": [error.height]}
    if not isinstance(error, InvalidInput):
        return {}
    members: Json = {"field": excerpt(error.field), "value": excerpt(error.value)}
    if isinstance(error, InvalidFlights):
        members["errors"] = shown_errors(error.problems)
    return members | (error.members if isinstance(error, InvalidFlight) else {})


def shown_errors(problems: Sequence[InvalidInput]) -> list[Error]:
    """Return the first `MOST_ERRORS` of `problems`, with their rows if they have any."""
    return [Error(**problem.described()) for problem in problems[:MOST_ERRORS]]


def _of_http(error: HTTPException) -> Response:
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    detail = error.description or HTTPStatus(status).description
    if status == HTTPStatus.NOT_FOUND:
        detail = "there is nothing at this address; GET /docs describes all addresses"
    if isinstance(error, MethodNotAllowed):
        methods = ", ".join(sorted(error.valid_methods or ()))
        detail = f"this address takes only {methods}; GET /docs describes all addresses"
    pairs = [pair for pair in error.get_headers() if pair[0] == "Allow"]
    return problem(status, detail, *pairs)


def _of_system(error: OSError) -> Response:
    """Return 503 for an error of the disk, which is not the request's fault, and may pass."""
    what = f"{error.filename}: " if error.filename else ""
    detail = (
        f"the operating system refuses: {what}{error.strerror or error}; "
        "look at the disk and its folder"
    )
    return problem(503, detail, ("Retry-After", str(RETRY_AFTER_S)))
