"""Whom a workload asks, by the scheme of its URL: a service over HTTP, or a MariaDB.

    http://127.0.0.1:8000, https://…    `client`: GET, or POST of a body
    mariadb://lab@127.0.0.1:3306        `sql`: the body is a statement, the path /DATABASE

Another kind of server is one more line in `_ORIGINS`. Used inside Locust, on gevent.
"""

from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

from loadtests.generation.client import TIMEOUT_S, Answer, Client, Origin
from loadtests.generation.sql import SqlClient, SqlOrigin


class Asker(Protocol):
    """Asks one thing at a time."""

    def ask(self, path: str, then: Callable[[Answer], None], body: str = "") -> None:
        """Ask, then call `then` with what came of it, even if this greenlet is killed."""

    def close(self) -> None:
        """Drop the connection, if there is one."""


_ORIGINS: dict[str, tuple[Any, Any]] = {
    "http": (Origin, Client),
    "https": (Origin, Client),
    "mariadb": (SqlOrigin, SqlClient),
}


class Place:
    """Where a workload goes; names are resolved once, here."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for a URL that nothing here can ask, OSError for an unknown name."""
        scheme = urlsplit(url).scheme
        if scheme not in _ORIGINS:
            raise ValueError(
                f"the host is {url!r}; it must begin with {', '.join(_ORIGINS)} and ://"
            )
        made, self._client = _ORIGINS[scheme]
        self._origin = made(url)

    def asker(self, *, keep_alive: bool = False, timeout_s: float = TIMEOUT_S) -> Asker:
        """One who asks there. keep_alive: on one connection as long as it lasts."""
        found: Asker = self._client(self._origin, keep_alive=keep_alive, timeout_s=timeout_s)
        return found
