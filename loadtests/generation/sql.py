"""Sends one SQL statement to a MariaDB over a gevent socket, timed as `client` times a request.

PyMySQL logs in. The statement is then sent and its answer read over the same socket, without making
Python objects of the rows: for a long answer that would take more time than the server does, and
would be measured in its place. Status 200 is an answer without an error, 500 an error of the
server, 0 no whole answer. The server does not report its own time.

Every statement has a connection of its own, as in the study, unless a customer of a closed workload
keeps one.
Source: the client/server protocol of MariaDB, "packet" and "COM_QUERY response".
"""

import socket
from collections.abc import Callable
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import gevent
import gevent.socket
import pymysql
from pymysql.connections import Connection

from loadtests.generation.client import STOPPED, TIMEOUT_S, Answer, received_by, stamped_socket
from loadtests.generation.rows import NO_ANSWER
from loadtests.generation.waiting import meet
from loadtests.servers.timing import NOTHING_REPORTED

ANSWERED, REFUSED = 200, 500

_PORT = 3306
_QUERY = b"\x03"
_OK, _EOF, _ERROR = 0x00, 0xFE, 0xFF
_HEADER_BYTES = 4  # 3 bytes of length, 1 of sequence number
_LONGEST_EOF = 8  # a row may begin with the same byte, but is then longer


class _Session(Connection):  # type: ignore[misc]  # PyMySQL has no types
    """Logs in as PyMySQL does, without asking again for the character set agreed at login.

    wire: its socket, which it closes when it is deleted.
    """

    wire: gevent.socket.socket

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
        session.wire = stamped_socket(self._family)
        try:
            session.wire.connect(self._address)
            session.connect(session.wire)
        except BaseException:
            session.wire.close()
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
        reply = _Reply()
        status, problem = NO_ANSWER, STOPPED
        meet(due_s)
        sent_s = monotonic()
        try:
            with gevent.Timeout(self._timeout_s):
                self._exchange(path.removeprefix("/"), body, reply)
            status, problem = (REFUSED, reply.error) if reply.error else (ANSWERED, "")
        except gevent.Timeout:
            problem = f"no whole answer within {self._timeout_s:g} s"
        except (OSError, pymysql.MySQLError) as failure:
            problem = f"{type(failure).__name__}: {failure}"
        finally:
            done_s = monotonic() if problem else max(sent_s, reply.received_s)
            self.close()
            answer = Answer(sent_s, done_s, status, NOTHING_REPORTED, reply.bytes, problem, "SQL")
            then(answer)
        return answer

    def close(self) -> None:
        """Log out and close the connection, if there is one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _exchange(self, database: str, statement: str, reply: "_Reply") -> None:
        self._session = self._origin.connect(database)
        wire = self._session.wire
        content = _QUERY + statement.encode("utf-8")
        wire.sendall(len(content).to_bytes(3, "little") + b"\0" + content)
        while not reply.is_whole:
            received, reply.received_s = received_by(wire)
            if not received:
                raise ConnectionResetError("the connection was closed within the answer")
            reply.feed(received)


class _Reply:
    """Follows an answer packet by packet to its end.

    An answer is an OK or an error; or a packet with the number of columns, their definitions, an
    EOF, the rows, and a second EOF or an error.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.received_s = 0.0
        self.error = ""
        self.is_whole = False
        self._pending = b""
        self._packets = self._ends = 0

    def feed(self, received: bytes) -> None:
        """Take more bytes of the answer."""
        self.bytes += len(received)
        data, at = self._pending + received, 0
        while len(data) - at > _HEADER_BYTES and not self.is_whole:
            length, start = int.from_bytes(data[at : at + 3], "little"), at + _HEADER_BYTES
            if len(data) < start + length:
                break
            at = start + length
            mark = data[start]
            self._packets += 1
            self._ends += mark == _EOF and length <= _LONGEST_EOF
            if mark == _ERROR:
                code = int.from_bytes(data[start + 1 : start + 3], "little")
                self.error = f"error {code}: {data[start + 3 : at].decode('utf-8', 'replace')}"
            is_ok = mark == _OK and self._packets == 1
            self.is_whole = is_ok or mark == _ERROR or self._ends == 2
        self._pending = data[at:]
