"""Answers every request at once, to show what a load generator adds itself.

`python -m loadtests.servers.null PORT` serves one connection after the other on 127.0.0.1, until it
is ended.
"""

import socket
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from loadtests.processes import HOST, Service, free_port, plain_environment, serving

WAITING = 1024
LONGEST_REQUEST = 65536
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
    b"Connection: close\r\n\r\n{}"
)


def null_server(log: Path) -> AbstractContextManager[Service]:
    """Run a null server. Raises ProgramFailed."""
    port = free_port()
    command = [sys.executable, "-m", "loadtests.servers.null", str(port)]
    return serving(command, port, log, "/", plain_environment())


def serve(port: int) -> None:
    with socket.create_server((HOST, port), backlog=WAITING) as server:
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                if connection.recv(LONGEST_REQUEST):
                    connection.sendall(ANSWER)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
