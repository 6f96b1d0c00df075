"""Answers requests that HTTP itself refuses, before they could be read completely."""

from http import HTTPStatus
from typing import Any

from backend.api.conditions import NO_STORE
from backend.api.metrics import Metrics
from backend.api.observing import new_request_id, write_line
from backend.api.problems import MIMETYPE, problem_body

RETRY_AFTER_S = 1


class Unread:
    """Makes problems for requests that HTTP refuses, counts them, and logs them like other answers.

    always: further headers of every answer.
    """

    def __init__(
        self, metrics: Metrics, *, access_log: bool, always: tuple[tuple[str, str], ...]
    ) -> None:
        self._metrics = metrics
        self._access_log = access_log
        self._always = "".join(f"{name}: {value}\r\n" for name, value in always)

    def problem(self, client: Any, status: int, detail: str, **more: object) -> bytes:
        """A complete HTTP answer, after which the connection ends. client: the client's address."""
        self._metrics.refused(status)
        body, request_id = problem_body(status, detail, **more), new_request_id()
        later = f"Retry-After: {RETRY_AFTER_S}\r\n" if status == 503 else ""
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {MIMETYPE}\r\n{later}"
            f"Content-Length: {len(body)}\r\nCache-Control: {NO_STORE}\r\n"
            f"X-Request-ID: {request_id}\r\n{self._always}Connection: close\r\n\r\n"
        )
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
        return head.encode("ascii") + body
