"""Sends HTTP requests to other programs: to logs, to witnesses, and to processes of this service.

One limit of time holds for the whole answer, redirections included, so that nobody can keep us
waiting with a byte now and then. A redirection to another server is not followed. No proxy is
asked, whatever the environment says: most of those who are asked are on this machine or in this
house.
"""

import http.client
import io
import socket
import time
import urllib.error
import urllib.request
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from backend.base.errors import FlightchainError

ANSWER_WITHIN_S = 10.0
MOST_BYTES = 64 * 1024


class NoAnswer(FlightchainError):
    """Nobody answers at a URL; or not in time, not in HTTP, or too much."""


class Answer(NamedTuple):
    """What was answered, be it an error."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; what is no UTF-8 in it is replaced."""
        return self.body.decode(errors="replace")


def ask(
    url: str,
    body: bytes | None = None,
    *,
    within_s: float = ANSWER_WITHIN_S,
    most_bytes: int = MOST_BYTES,
) -> Answer:
    """Send a request, which is a POST if it has a body. Raises NoAnswer.

    within_s: how long the whole answer may take. most_bytes: how long its body may be.
    """
    try:
        request = urllib.request.Request(url, body)  # noqa: S310  the opener knows HTTP alone
        if body is not None:
            request.add_header("Content-Type", "text/plain")
        try:
            response = _opener(time.monotonic() + within_s).open(request)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            answer = Answer(response.status, response.read(most_bytes + 1))
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)  # urllib wraps what went wrong
        raise NoAnswer(f"{url} cannot be read: {reason}") from error
    if len(answer.body) > most_bytes:
        raise NoAnswer(f"{url} sends more than {most_bytes} bytes")
    return answer


def _opener(deadline: float) -> urllib.request.OpenerDirector:
    """Return what opens HTTP and HTTPS, and nothing else. deadline: in monotonic seconds."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        _InTime(deadline),
        _Redirections(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


class _InTime(urllib.request.AbstractHTTPHandler):
    """Opens connections that end at the deadline."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self._open(_Connection, request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self._open(_SecureConnection, request)

    def _open(
        self, connection: type["_Connection"], request: urllib.request.Request
    ) -> http.client.HTTPResponse:
        request.timeout = _left_s(self._deadline)
        return self.do_open(partial(connection, deadline=self._deadline), request)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections of a server to itself, and closes the connection of all others.

    Whoever named a server did not name those that it names, which may be on this machine.
    """

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            raise OSError(
                f"it sends to another server, {newurl[:200]}; name that one if it is right"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except urllib.error.HTTPError:  # has the answer, which is still to be read
            raise
        except OSError:
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _Connection(http.client.HTTPConnection):
    """A connection whose answer is read until the deadline."""

    def __init__(self, host: str, *, deadline: float, **more: Any) -> None:
        super().__init__(host, **more)
        self.response_class = partial(_Response, deadline=deadline)  # type: ignore[assignment]


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    """A connection by HTTPS whose answer is read until the deadline."""


class _Response(http.client.HTTPResponse):
    """An answer that is read until the deadline."""

    def __init__(self, sock: socket.socket, *, deadline: float, **more: Any) -> None:
        super().__init__(sock, **more)
        raw = self.fp.detach()
        self.fp = io.BufferedReader(_Reading(sock, raw, deadline))


class _Reading(io.RawIOBase):
    """Reads from a socket; each reading may take as long as is left until the deadline."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        self._socket, self._raw, self._deadline = sock, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(_left_s(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _left_s(deadline: float) -> float:
    """Return how long it is until the deadline. Raises TimeoutError if it has passed."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s
