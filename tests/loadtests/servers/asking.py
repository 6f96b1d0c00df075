"""Asking a server of the lab, each time over a connection of its own."""

import json
import re
import select
import socket
from typing import Any
from urllib.parse import urlencode, urlsplit

from loadtests.processes import Service

Headers = dict[str, str]  # by their names in lower case


def ask(server: Service, path: str, **given: object) -> tuple[int, Any, Headers]:
    """Status, JSON and headers of the answer to GET `path` with these parameters."""
    with server.connection(60) as connection:
        connection.request("GET", f"{path}?{urlencode(given)}" if given else path)
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return response.status, json.loads(response.read()), headers


def parts(headers: Headers) -> tuple[dict[str, float], dict[str, int]]:
    """Milliseconds and counts of a Server-Timing."""
    timing = headers["server-timing"]
    counts = {name: int(count) for name, count in re.findall(r'(\w+);desc="(\d+)"', timing)}
    return {name: float(ms) for name, ms in re.findall(r"(\w+);dur=([0-9.]+)", timing)}, counts


def is_answered_before_a_later_one(server: Service, path: str, short: str = "/live") -> bool:
    """Whether a long request for `path` is over when a `short` one, sent later, is answered."""
    at = urlsplit(server.url)
    with socket.create_connection((at.hostname, at.port), timeout=60) as first:
        first.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert ask(server, short)[0] == 200
        is_over = select.select([first], [], [], 0)[0] == [first]
        assert first.recv(15) == b"HTTP/1.1 200 OK"
        return is_over
