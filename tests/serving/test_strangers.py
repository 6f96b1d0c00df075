"""Clients that nobody would write, at both ports of a running service, as bytes on the wire.

These tests start the product as processes and know nothing of the server below. Each says what a
client sees, or what a worker takes while clients do their worst.
"""

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from backend.api.json_answers import encode
from backend.api.schemas import FLIGHT_EXAMPLE
from tests.api.processes import Service, backend, free_port, serving, until
from tests.raw_http import (
    HELD,
    HIDDEN,
    HIDDEN_STATUS,
    HOST,
    STATUS,
    STRANGER,
    answer_to,
    connected,
    hiding_requests,
    is_served,
    megabytes,
)

pytestmark = pytest.mark.slow

BLOCKS = 22
BLOCK = "GET /blocks/%d HTTP/1.1\r\nHost: localhost\r\n\r\n"
UNREAD_MB = 32  # README's promise, for the answers that one worker keeps
OTHER_MB = 24  # what a worker takes besides: requests, buffers, and memory that it will use again
OTHER = "127.0.0.3"
CONNECTIONS = 2000
SERVED_WITHIN_S = 5.0  # on a machine that does much else
PATIENCE_S = 4.0  # in which a port has to say something, if only that it refuses


class Ports(NamedTuple):
    """A running service with its pages."""

    service: Service
    pages: int

    def both(self) -> tuple[tuple[int, str], ...]:
        """Each port, and a path that is answered 200 at once."""
        return (self.service.port, "/health/live"), (self.pages, "/health/live")


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    folder, pages = tmp_path_factory.mktemp("strangers") / "chain", free_port()
    done = backend(folder, "import", "--generate", str(BLOCKS * 1000))
    assert done.returncode == 0, done.stderr
    with serving(
        folder,
        "--frontend",
        FLIGHTCHAIN_FRONTEND_PORT=pages,
        FLIGHTCHAIN_MINE_INTERVAL_S=3600,
    ) as service:
        until(lambda: is_served(pages, "/health/live", "127.0.0.1", SERVED_WITHIN_S))
        yield Ports(service, pages)


# --- memory --------------------------------------------------------------------------------------


def test_answers_that_nobody_reads_take_no_more_than_is_promised(ports: Ports) -> None:
    service = ports.service
    blocks = "".join(BLOCK % (1 + n % BLOCKS) for n in range(20)).encode()
    for _ in range(4):  # by both workers, so that their caches are full
        answer_to(service.port, blocks)
    workers = service.booted()
    for pid in workers:
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
    before = {pid: megabytes(pid, "VmRSS") for pid in workers}
    with ExitStack() as held:
        for _ in range(200):
            client = held.enter_context(connected(service.port, SO_RCVBUF=4096))
            client.sendall(blocks)
        until(lambda: is_served(service.port, "/health/live", OTHER, SERVED_WITHIN_S))
        time.sleep(1.0)  # the workers answer meanwhile
    until(lambda: is_served(service.port, "/health/live", OTHER, SERVED_WITHIN_S))
    taken = {pid: megabytes(pid, "VmHWM") - before[pid] for pid in workers}
    assert service.booted() == workers
    assert max(taken.values()) <= UNREAD_MB + OTHER_MB, taken


# --- connections ---------------------------------------------------------------------------------


def hold(port: int, count: int, held: ExitStack) -> list[socket.socket]:
    """As many hostile connections of all kinds, from one address, as the port takes."""
    connections = []
    for number in range(count):
        with suppress(OSError):
            connection = held.enter_context(connected(port, STRANGER))
            connection.sendall(list(HELD.values())[number % len(HELD)])
            connections.append(connection)
    return connections


@pytest.mark.parametrize("which", [0, 1], ids=["service", "pages"])
def test_thousands_of_connections_from_one_address_do_not_shut_the_port(
    ports: Ports, which: int
) -> None:
    port, path = ports.both()[which]
    processes = ports.service.processes()
    assert any(_is_open_in_a_flood(port, path) for _ in range(3))
    assert ports.service.processes().keys() == processes.keys()


def _is_open_in_a_flood(port: int, path: str) -> bool:
    """Whether others are served, and all are told something, while one address floods a port.

    Of a port that is shut, none of the first two thirds are served. A busy machine may be as slow,
    but not again and again.
    """
    with ExitStack() as held:
        hold(port, CONNECTIONS, held)
        with ThreadPoolExecutor(8) as pool:
            served = list(
                pool.map(lambda _: is_served(port, path, OTHER, SERVED_WITHIN_S), range(24))
            )
        late = [connected(port, STRANGER) for _ in range(8)]
        for connection in late:
            held.enter_context(connection).sendall(HELD["kept"])
        answered = [_says_something(connection) for connection in late]
    return sum(served) >= 16 and all(answered)


def _says_something(connection: socket.socket) -> bool:
    connection.settimeout(PATIENCE_S)
    try:
        connection.recv(100)
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


# --- one request and no other --------------------------------------------------------------------


def test_no_request_hides_another_one(ports: Ports) -> None:
    requests = list(hiding_requests())
    assert len(requests) > 400
    for port, _ in ports.both():
        assert re.findall(STATUS, answer_to(port, HIDDEN)) == [HIDDEN_STATUS]
        with ThreadPoolExecutor(16) as pool:
            answers = pool.map(lambda pair: answer_to(port, pair[1]), requests)  # noqa: B023
            for (odd, request), answer in zip(requests, answers, strict=True):
                statuses = re.findall(STATUS, answer)
                assert HIDDEN_STATUS not in statuses, (odd, request, answer)
                assert set(statuses[1:]) <= {b"400"}, (odd, request, answer)


def test_an_offer_to_upgrade_is_passed_over_and_its_body_read(ports: Ports) -> None:
    """Java's client and `curl --http2` make this offer with each post."""
    body = encode(FLIGHT_EXAMPLE)
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAQAAP__\r\n"
    kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    post = b"POST /transactions?dry_run=true HTTP/1.1\r\n" + HOST + offer + kind + body
    answer = answer_to(ports.service.port, post + HELD["kept"])
    assert re.findall(STATUS, answer) == [b"200", b"200"], answer


# --- 100 Continue --------------------------------------------------------------------------------

EXPECTING = HOST + b"Content-Type: %b\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
DECIDED = {  # by their heads alone
    "an unknown address": (b"POST /nowhere", b"application/json", 50, 404),
    "another method": (b"POST /tip", b"application/json", 50, 405),
    "another kind of body": (b"POST /transactions", b"text/plain", 50, 415),
    "a long body": (b"POST /transactions", b"application/json", 10**6, 413),
    "a part of no file": (b"POST /imports/0f?OFFSET=0", b"application/octet-stream", 50, 404),
    "a parameter that is not known": (b"POST /transactions?x=1", b"application/json", 50, 400),
}


@pytest.mark.parametrize(("line", "kind", "length", "status"), DECIDED.values(), ids=DECIDED)
def test_what_the_head_decides_is_answered_before_the_body_is_sent(
    ports: Ports, line: bytes, kind: bytes, length: int, status: int
) -> None:
    answer = answer_to(ports.service.port, line + b" HTTP/1.1\r\n" + EXPECTING % (kind, length))
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert b"\r\nConnection: close\r\n" in answer  # or a proxy sends the body, or another request


def test_what_the_head_does_not_decide_may_be_sent(ports: Ports) -> None:
    head = b"POST /transactions HTTP/1.1\r\n" + EXPECTING % (b"application/json", 50)
    assert answer_to(ports.service.port, head) == b"HTTP/1.1 100 Continue\r\n\r\n"
