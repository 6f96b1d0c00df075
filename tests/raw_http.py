"""Sends bytes to a port as they are, from any loopback address, and the requests that hide others.

Nothing here knows which server listens.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

WITHIN_S = 10.0
QUIET_S = 0.3  # a server that has said nothing for so long has answered

STRANGER = "127.0.0.2"  # the address of clients that nobody would write

HOST = b"Host: localhost\r\n"
HIDDEN = b"GET / HTTP/1.1\r\nHost: hidden.example\r\n\r\n"  # is answered 421 at either port
HIDDEN_STATUS = b"421"
STATUS = rb"HTTP/1\.[01] ([0-9]{3})"
_LENGTH = b"%d" % len(HIDDEN)

# Header lines by which two servers may disagree about where a body ends.
FRAMINGS = {
    "16 digits": b"Content-Length: " + _LENGTH.rjust(16, b"0"),
    "two lengths": b"Content-Length: 0\r\nContent-Length: " + _LENGTH,
    "two lengths, the longer first": b"Content-Length: " + _LENGTH + b"\r\nContent-Length: 0",
    "the same length twice": b"Content-Length: " + _LENGTH + b"\r\nContent-Length: " + _LENGTH,
    "a list of lengths": b"Content-Length: " + _LENGTH + b", " + _LENGTH,
    "a length of 0 and more": b"Content-Length: 0, " + _LENGTH,
    "a plus": b"Content-Length: +" + _LENGTH,
    "a minus": b"Content-Length: -" + _LENGTH,
    "a hexadecimal length": b"Content-Length: 0x" + _LENGTH,
    "a decimal point": b"Content-Length: " + _LENGTH + b".0",
    "underscores": b"Content-Length: 4_2",
    "a digit that is not ASCII": b"Content-Length: 4\xb2",
    "an empty length": b"Content-Length:",
    "an enormous length": b"Content-Length: 18446744073709551616",
    "a space before the colon": b"Content-Length : " + _LENGTH,
    "a tab before the colon": b"Content-Length\t: " + _LENGTH,
    "a space before the name": b" Content-Length: " + _LENGTH,
    "a folded length": b"Content-Length:\r\n " + _LENGTH,
    "a folded header before it": b"X: a\r\n\tContent-Length: " + _LENGTH,
    "a vertical tab": b"Content-Length:\x0b" + _LENGTH,
    "a NUL": b"Content-Length: " + _LENGTH + b"\x00",
    "a bare line feed": b"X: a\nContent-Length: " + _LENGTH,
    "a bare return": b"X: a\rContent-Length: " + _LENGTH,
    "a return at the end": b"Content-Length: " + _LENGTH + b"\r",
    "no colon": b"Content-Length " + _LENGTH,
    "chunks": b"Transfer-Encoding: chunked",
    "chunks in capitals": b"TRANSFER-ENCODING: CHUNKED",
    "chunks and a length": b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    "a length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked",
    "chunks twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "chunks and nothing": b"Transfer-Encoding: chunked, identity",
    "chunks of something else": b"Transfer-Encoding: gzip, chunked",
    "something else": b"Transfer-Encoding: gzip",
    "nothing": b"Transfer-Encoding: identity",
    "an empty coding": b"Transfer-Encoding:\r\nContent-Length: 5",
    "disguised chunks": b"Transfer-Encoding: xchunked",
    "quoted chunks": b'Transfer-Encoding: "chunked"',
    "chunks after a tab": b"Transfer-Encoding:\tchunked",
    "chunks after a vertical tab": b"Transfer-Encoding: \x0bchunked",
    "chunks with a space before the colon": b"Transfer-Encoding : chunked",
    "folded chunks": b"Transfer-Encoding:\r\n chunked",
    "chunks after a bare line feed": b"X: a\nTransfer-Encoding: chunked",
    "an upgrade with a body": b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: " + _LENGTH,
    "an upgrade with chunks": b"Connection: Upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked",
}
LINES = {
    "POST": b"POST /transactions HTTP/1.1\r\n",
    "GET": b"GET /health/live HTTP/1.1\r\n",
    "HEAD": b"HEAD /health/live HTTP/1.1\r\n",
    "HTTP/1.0": b"POST /transactions HTTP/1.0\r\n",
    "CONNECT": b"CONNECT localhost:80 HTTP/1.1\r\n",
}
BODIES = {"as it is": HIDDEN, "behind the last chunk": b"0\r\n\r\n" + HIDDEN}


# What hostile connections have sent, that are only held.
HELD = {
    "silent": b"",
    "line ends": b"\r\n",
    "part of a head": b"GET /tip HTTP/1.1\r\nX: ",
    "part of a body": b"POST /transactions HTTP/1.1\r\n" + HOST + b"Content-Length: 60000\r\n\r\nx",
    "kept": b"GET /health/live HTTP/1.1\r\n" + HOST + b"\r\n",
}


def hiding_requests() -> Iterator[tuple[str, bytes]]:
    """Each request with a hidden one in its body, and what is odd about it."""
    for (method, line), (odd, framing), (where, body) in product(
        LINES.items(), FRAMINGS.items(), BODIES.items()
    ):
        yield f"{method}, {odd}, {where}", line + HOST + framing + b"\r\n\r\n" + body


def connected(port: int, source: str = "127.0.0.1", **options: int) -> socket.socket:
    """A connection to a port of 127.0.0.1. source: the client's address. options: of the socket."""
    connection = socket.socket()
    for name, value in options.items():
        connection.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
    connection.settimeout(WITHIN_S)
    try:
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    return connection


def answer_to(port: int, data: bytes, source: str = "127.0.0.1") -> bytes:
    """All that comes back for `data`, until the connection ends or is quiet."""
    received = b""
    with suppress(OSError), connected(port, source) as connection:
        connection.sendall(data)
        while part := connection.recv(65536):
            received += part
            connection.settimeout(QUIET_S)
    return received


def ended_within(connection: socket.socket, within_s: float) -> bool:
    """Returns whether the other side ends a connection within this time."""
    until = time.monotonic() + within_s
    with suppress(OSError):
        while (left_s := until - time.monotonic()) > 0:
            connection.settimeout(left_s)
            if not connection.recv(65536):
                return True
        return False
    return time.monotonic() < until  # an error other than a timeout is an end, too


def is_served(port: int, path: str, source: str, within_s: float) -> bool:
    """Returns whether a new client gets a whole answer in time."""
    asked = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    received = b""
    with suppress(OSError), connected(port, source) as connection:
        connection.settimeout(within_s)
        connection.sendall(asked)
        while part := connection.recv(65536):
            received += part
        return received.startswith(b"HTTP/1.1 200")
    return False


def megabytes(pid: int, field: str) -> float:
    """Memory of a process, as /proc/PID/status has it: VmRSS now, VmHWM at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) / 1024
