"""Answers requests that HTTP itself refuses, before they could be read completely."""

from typing import Any

from backend.api.conditions import NO_STORE
from backend.api.metrics import Metrics
from backend.api.observing import Headers, new_request_id, write_line
from backend.api.problems import MIMETYPE, problem_body

RETRY_AFTER_S = 1


class RejectedRequests:
    """Makes problems for requests that HTTP refuses, counts them, and logs them like other answers.

    always: further headers of every answer.
    """

    def __init__(
        self, metrics: Metrics, *, access_log: bool, always: tuple[tuple[str, str], ...]
    ) -> None:
        self._metrics = metrics
        self._access_log = access_log
        self._always = always

    def problem(
        self, client: Any, status: int, detail: str, **more: object
    ) -> tuple[Headers, bytes]:
        """Headers and body of the answer. client: the client's address."""
        self._metrics.refused(status)
        body, request_id = problem_body(status, detail, **more), new_request_id()
        headers = [("Content-Type", MIMETYPE), ("Cache-Control", NO_STORE)]
        if status == 503:
            headers.append(("Retry-After", str(RETRY_AFTER_S)))
        headers += [("X-Request-ID", request_id), *self._always]
        if self._access_log:
            write_line(
                request_id=request_id,
                method=None,
                route=None,
                query=None,
                status=status,
                bytes=len(body),
                duration_ms=None,
                client=client[0] if isinstance(client, tuple) else None,
                is_whole=True,
            )
        return headers, body
