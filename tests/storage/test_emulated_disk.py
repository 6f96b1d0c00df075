"""A service with an emulated disk: when it starts, what it says, whom it keeps waiting."""

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.processes import Service, free_port, until
from tests.api.worlds import World, world_in
from tests.cases import each_of
from tests.test_cli import call

pytestmark = pytest.mark.slow

LAB = {"FLIGHTCHAIN_LAB": "yes", "FLIGHTCHAIN_EMULATED_DISK": 1}
SCAN = (
    "/average_delays?OP_CARRIER_AIRLINE_ID=1&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02"
    "&engine=scan"
)
HEADER = "X-Emulated-Disk"


@each_of(
    ("command", "settings", "says"),
    [
        (["serve"], {"FLIGHTCHAIN_LAB": "no"}, "set FLIGHTCHAIN_LAB=yes if this is the lab"),
        (["serve", "--only-http"], {}, "set FLIGHTCHAIN_LAB=yes if this is the lab"),
        (
            ["serve"],
            {"FLIGHTCHAIN_LAB": "yes", "FLIGHTCHAIN_HOST": "0.0.0.0"},
            "others can reach FLIGHTCHAIN_HOST 0.0.0.0",
        ),
        (
            ["import", "--generate", "1", "--then-serve"],
            {"FLIGHTCHAIN_LAB": "yes", "FLIGHTCHAIN_FRONTEND_HOST": "192.0.2.1"},
            "others can reach FLIGHTCHAIN_FRONTEND_HOST 192.0.2.1",
        ),
    ],
)
def test_an_emulated_disk_is_refused_outside_the_lab(
    tmp_path: Path, command: list[str], settings: dict[str, str], says: str
) -> None:
    if not (tmp_path / "tokens.json").exists():
        call(tmp_path, "token", "add", "somebody")
    given: Any = {"FLIGHTCHAIN_EMULATED_DISK": 100, "FLIGHTCHAIN_PORT": free_port(), **settings}
    refused = call(tmp_path, *command, **given)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith("error: FLIGHTCHAIN_EMULATED_DISK 100: ")
    assert says in line
    assert not (tmp_path / "blocks").exists()


@contextmanager
def one_worker(world: World, **settings: object) -> Iterator[Service]:
    """A web server alone, of one worker and without caches, so that every read waits."""
    only: Any = {"FLIGHTCHAIN_CACHE_BYTES": 0, "FLIGHTCHAIN_WORKERS": 1, **LAB, **settings}
    service = Service(world.settings.folder, "--only-http", **only)
    try:
        until(lambda: service.process.poll() is not None or service.answers("/health/live"))
        assert service.process.poll() is None, service.said()
        yield service
    finally:
        service.end()


@pytest.fixture(scope="module")
def slow(world: World) -> Iterator[Service]:
    """K = 1: a scan waits 85 ms for each of 31 blocks."""
    with one_worker(world) as service:
        yield service


def test_every_answer_tells_of_it(slow: Service) -> None:
    for path in ("/tip", "/nothing", "/blocks/99999", "/health/live", "/openapi.json"):
        assert slow.get(path).headers[HEADER] == "1", path


def test_what_the_worker_refuses_by_itself_tells_of_it(slow: Service) -> None:
    with socket.create_connection(("127.0.0.1", slow.port), timeout=20) as client:
        client.sendall(b"POST /transactions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        head = client.makefile("rb").read().partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 411 ")
    assert b"\r\nX-Emulated-Disk: 1\r\n" in head


def test_a_scan_waits_for_each_block_it_reads(slow: Service, world: World) -> None:
    require_waits(slow, blocks=world.tip + 1, speedup=1)


def test_one_worker_of_type_sync_answers_one_request_at_a_time(tmp_path: Path) -> None:
    """As the study's server did, first come first served."""
    world = world_in(tmp_path / "chain")  # what ends a service ends all of its folder
    settings = {"FLIGHTCHAIN_EMULATED_DISK": 10, "FLIGHTCHAIN_WORKER_TYPE": "sync"}
    with (
        one_worker(world, **settings) as service,
        socket.create_connection(("127.0.0.1", service.port), timeout=60) as client,
    ):
        client.sendall(f"GET {SCAN} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert service.get("/health/live", timeout_s=60).status_code == 200
        assert select.select([client], [], [], 0)[0] == [client]
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        client.close()
        require_waits(service, blocks=world.tip + 1, speedup=10)


def require_waits(service: Service, blocks: int, speedup: int) -> None:
    """Have a scan that takes as long as that disk does, and answers as the index does."""
    answer = service.get(SCAN, timeout_s=60)
    plain = service.json(SCAN.replace("scan", "index"))
    assert answer.headers[HEADER] == str(speedup)
    timings = answer.headers["Server-Timing"]
    assert f'desc="{blocks} blocks in {blocks} refills"' in timings
    assert answer.elapsed.total_seconds() >= 0.98 * blocks * 0.085 / speedup
    found = answer.json()
    assert found.pop("query")["engine"] == "scan"
    assert plain.pop("query")["engine"] == "index"
    assert found == plain
