"""Sends one SQL statement to a MariaDB over a gevent socket, timed as `client` times a request.

PyMySQL logs in, and reads the packets of an answer. No Python objects are made of the rows: for a
long answer that would take more time than the server does, and would be measured in its place; and
an answer's time is that at which the kernel had its last bytes. Status 200 is an answer without an
error, 500 an error of the server, 0 no whole answer. The server does not report its own time.

Every statement has a connection of its own, as in the study.
Source: the client/server protocol of MariaDB, "COM_QUERY response".
"""

import socket
from collections.abc import Callable
from io import BufferedReader, RawIOBase
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import gevent
import gevent.socket
import pymysql
from pymysql.connections import Connection
from pymysql.constants.COMMAND import COM_QUERY

from loadtests.generation.client import (
    READ_BYTES,
    STOPPED,
    TIMEOUT_S,
    Answer,
    received_by,
    stamped_socket,
)
from loadtests.generation.rows import NO_ANSWER
from loadtests.generation.waiting import meet
from loadtests.servers.timing import NOTHING_REPORTED

ANSWERED, REFUSED = 200, 500

_PORT = 3306


class _Arrived(RawIOBase):
    """Reads a socket. bytes: how many there were; received_s: when the kernel had the last."""

    def __init__(self, wire: gevent.socket.socket) -> None:
        super().__init__()
        self._wire, self.bytes, self.received_s = wire, 0, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content, self.received_s = received_by(self._wire, len(buffer))
        buffer[: len(content)] = content
        self.bytes += len(content)
        return len(content)


class _Session(Connection):  # type: ignore[misc]  # PyMySQL has no types
    """Logs in as PyMySQL does, without asking again for the character set agreed at login."""

    arrived: _Arrived

    def connect(self, sock: gevent.socket.socket) -> None:
        """Log in over a socket, which is closed with the session."""
        super().connect(sock)
        self.arrived = _Arrived(sock)
        self._rfile = BufferedReader(self.arrived, READ_BYTES)

    def set_character_set(self, charset: str, collation: Any = None) -> None:
        """Do nothing, because a statement for this would be one more visit to the server."""


class SqlOrigin:
    """Logs in to the server of a mariadb:// URL, whose name is resolved once."""

    def __init__(self, url: str) -> None:
        """Resolve the name. Raises ValueError if the URL is not of mariadb, OSError if unknown."""
        parts = urlsplit(url)
        if parts.scheme != "mariadb" or not parts.hostname or not parts.username:
            raise ValueError(f"the host is {url!r}; it must be like mariadb://lab@127.0.0.1:3306")
        self._user, self._password = parts.username, parts.password or ""
        port = parts.port or _PORT
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        self._family: int = addresses[0][0]
        self._address = addresses[0][4]

    def connect(self, database: str) -> _Session:
        """Return a connection that is logged in, each statement its own transaction.

        Raises OSError, pymysql.MySQLError.
        """
        session = _Session(
            user=self._user,
            password=self._password,
            database=database,
            autocommit=None,  # as the server has it: on
            ssl_disabled=True,  # otherwise each connection makes a context: 20 ms and more
            defer_connect=True,
        )
        wire = stamped_socket(self._family)
        try:
            wire.connect(self._address)
            session.connect(wire)
        except BaseException:
            wire.close()
            raise
        return session


class SqlClient:
    """Asks a database, each statement by a connection of its own."""

    def __init__(self, origin: SqlOrigin, *, timeout_s: float = TIMEOUT_S) -> None:
        self._origin, self._timeout_s = origin, timeout_s
        self._session: _Session | None = None

    def ask(
        self, path: str, then: Callable[[Answer], None], body: str = "", due_s: float = 0.0
    ) -> Answer:
        """Run the statement `body` in the database /`path`, then call `then`, as `Client` does."""
        status, problem = NO_ANSWER, STOPPED
        meet(due_s)
        sent_s = monotonic()
        try:
            with gevent.Timeout(self._timeout_s):
                self._exchange(path.removeprefix("/"), body)
            status, problem = ANSWERED, ""
        except gevent.Timeout:
            problem = f"no whole answer within {self._timeout_s:g} s"
        except (OSError, pymysql.MySQLError) as failure:
            problem = f"{type(failure).__name__}: {failure}"
            if self._session and self._session.open:  # so it is the server's word
                status = REFUSED
        finally:
            arrived = self._session.arrived if self._session else None
            done_s = max(sent_s, arrived.received_s) if arrived and not problem else monotonic()
            self.close()
            size = arrived.bytes if arrived else 0
            answer = Answer(sent_s, done_s, status, NOTHING_REPORTED, size, problem, "SQL")
            then(answer)
        return answer

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _exchange(self, database: str, statement: str) -> None:
        """Send a statement, and read the packets of its answer to the last, which says that it is.

        It is an OK; or a packet with the number of columns, their definitions, an EOF, the rows,
        and a second EOF. An error is raised.
        """
        self._session = self._origin.connect(database)
        self._session._execute_command(COM_QUERY, statement)
        ends = 2 * self._session._read_packet().is_ok_packet()
        while ends < 2:
            ends += self._session._read_packet().is_eof_packet()
