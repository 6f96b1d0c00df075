"""Chooses the client of a workload by the scheme of its URL: HTTP or MariaDB.

    http://127.0.0.1:8000, https://…    `client`: GET, or POST of a body
    mariadb://lab@127.0.0.1:3306        `sql`: the body is a statement, the path /DATABASE

Another kind of server needs one more line in `_ORIGINS`, and its client in `Asker`. This module is
used inside Locust, on gevent.
"""

from typing import Any
from urllib.parse import urlsplit

from loadtests.generation.client import TIMEOUT_S, Client, Origin
from loadtests.generation.sql import SqlClient, SqlOrigin

Asker = Client | SqlClient

_ORIGINS: dict[str, tuple[Any, Any]] = {
    "http": (Origin, Client),
    "https": (Origin, Client),
    "mariadb": (SqlOrigin, SqlClient),
}


class Place:
    """The server that a workload asks. Its name is resolved once, here."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for an unknown scheme or a wrong URL, OSError for an unknown name."""
        scheme = urlsplit(url).scheme
        if scheme not in _ORIGINS:
            raise ValueError(
                f"the host is {url!r}; it must begin with {', '.join(_ORIGINS)} and ://"
            )
        made, self._client = _ORIGINS[scheme]
        self._origin = made(url)

    def asker(self, *, keep_alive: bool = False, timeout_s: float = TIMEOUT_S) -> Asker:
        """A new client. keep_alive: uses one connection for as long as it lasts."""
        found: Asker = self._client(self._origin, keep_alive=keep_alive, timeout_s=timeout_s)
        return found
