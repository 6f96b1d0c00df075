"""Sends HTTP requests to other programs: to logs, to witnesses, and to processes of this service.

One limit of time holds for the whole answer, so that nobody can keep us waiting with a byte now and
then. No redirection is followed: whoever named an address did not name those that its server names,
which may be on this machine. No proxy is asked, whatever the environment says: most of those who
are asked are on this machine or in this house.
"""

import http.client
import io
import socket
import time
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit, urlunsplit

from backend.base.errors import FlightchainError

ANSWER_WITHIN_S = 10.0
MOST_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KINDS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class NoAnswer(FlightchainError):
    """Nobody answers at a URL; or not in time, not in HTTP, or too much."""


class Answer(NamedTuple):
    """The answer of a server, be it an error."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; what is no UTF-8 in it is replaced."""
        return self.body.decode(errors="replace")


def ask(url: str, body: bytes | None = None, *, within_s: float = ANSWER_WITHIN_S) -> Answer:
    """Send a request, which is a POST if it has a body. Raises NoAnswer.

    within_s: how long the whole answer may take. Its body may have `MOST_BYTES`.
    """
    try:
        answer = _asked(url, body, time.monotonic() + within_s)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", "") or error
        raise NoAnswer(f"{url} cannot be read: {reason}") from error
    if len(answer.body) > MOST_BYTES:
        raise NoAnswer(f"{url} sends more than {MOST_BYTES} bytes")
    return answer


def _asked(url: str, body: bytes | None, deadline: float) -> Answer:
    parts = urlsplit(url)
    if parts.scheme not in _KINDS or not parts.netloc:
        raise ValueError("it is not an HTTP address")
    kind, target = _KINDS[parts.scheme], urlunsplit(("", "", parts.path or "/", parts.query, ""))
    with closing(kind(parts.netloc, timeout=_left_s(deadline))) as connection:
        connection.response_class = partial(_Response, deadline=deadline)
        headers = {"Connection": "close", "User-Agent": "flightchain"}
        if body is not None:  # who sends content should say what it is (RFC 9110 section 8.3)
            headers["Content-Type"] = "text/plain"
        connection.request("GET" if body is None else "POST", target, body, headers)
        with connection.getresponse() as response:
            if response.status in _REDIRECTS and (location := response.headers["Location"]):
                elsewhere = urljoin(url, location)[:200]
                raise OSError(f"it redirects to {elsewhere}; use that address if it is right")
            return Answer(response.status, response.read(MOST_BYTES + 1))


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
