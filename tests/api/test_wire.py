"""What goes over the wire: real sockets, gunicorn, and bytes as a client sees them."""

import http.client
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from urllib.parse import urlencode

import pytest
import requests

from backend.sources.generated import Generated
from tests.api.processes import WITHIN_S, Service, serving, until
from tests.api.worlds import World, settings_for, world_in
from tests.cases import each_of
from tests.flights import import_flights
from tests.raw_http import megabytes
from tests.storage.chains import block_file, flip

pytestmark = pytest.mark.slow

DAYS = urlencode({"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-12-31"})
QUESTION = f"/average_delays?OP_CARRIER_AIRLINE_ID=19393&{DAYS}"
PATHS = ["/tip", "/blocks/1", "/blocks?limit=3", "/transactions/7", QUESTION, f"/flights?{DAYS}"]
NEVER = {"FLIGHTCHAIN_MINE_INTERVAL_S": 3600}


@pytest.fixture(scope="module")
def service(world: World) -> Iterator[Service]:
    with serving(world.settings.folder, FLIGHTCHAIN_ACCESS_LOG=1, **NEVER) as service:
        yield service


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over a chain of which a block in the last quarter has just been damaged."""
    folder = tmp_path_factory.mktemp("damaged") / "chain"
    world_in(folder)
    with serving(folder, FLIGHTCHAIN_CACHE_BYTES=0, **NEVER) as service:
        flip(block_file(folder), block_file(folder).stat().st_size * 7 // 8)
        yield service


def asked(
    service: Service, method: str, path: str, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    with closing(
        http.client.HTTPConnection("127.0.0.1", service.port, timeout=WITHIN_S)
    ) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response, response.read()


def raw(service: Service, request: bytes) -> bytes:
    """Everything that comes back for `request`, to the end of the connection."""
    received = b""
    with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
        connection.sendall(request)
        while part := connection.recv(65536):
            received += part
    return received


# --- conditions, encodings, methods --------------------------------------------------------------


@each_of("path", PATHS)
def test_a_304_has_no_body_and_the_connection_goes_on(service: Service, path: str) -> None:
    with closing(
        http.client.HTTPConnection("127.0.0.1", service.port, timeout=WITHIN_S)
    ) as connection:
        for accepted in ("identity", "gzip", "zstd"):
            connection.request("GET", path, headers={"Accept-Encoding": accepted})
            first = connection.getresponse()
            first.read()
            etag = first.headers["ETag"]
            condition = {"Accept-Encoding": accepted, "If-None-Match": etag}
            connection.request("GET", path, headers=condition)
            again = connection.getresponse()
            assert (again.status, again.read()) == (304, b"")
            assert again.headers["ETag"] == etag
            assert again.headers["X-Request-ID"]


def test_all_workers_give_the_same_tags(service: Service) -> None:
    for path in PATHS:
        etags = {asked(service, "GET", path)[0].headers["ETag"] for _ in range(8)}
        assert len(etags) == 1, path


@pytest.mark.parametrize(
    "request_", [b"GET /tip HTTP/9.9\r\n", b"GET /tip HTTP/1.1\r\nX: \x00\r\n"]
)
def test_what_the_worker_refuses_has_an_id_that_is_in_the_log(
    service: Service, request_: bytes
) -> None:
    received = raw(service, request_ + b"\r\n")
    assert b"\r\nCache-Control: no-store" in received
    request_id = received.split(b"\r\nX-Request-ID: ")[1].split(b"\r\n")[0].decode()
    until(lambda: request_id in service.said())


# --- exports -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "accepted"), [("csv", "identity"), ("ndjson", "gzip")])
def test_a_client_sees_that_an_export_broke_off(damaged: Service, form: str, accepted: str) -> None:
    path = f"/flights?{DAYS}&format={form}"
    with pytest.raises(http.client.IncompleteRead) as caught:
        asked(damaged, "GET", path, **{"Accept-Encoding": accepted})
    assert b"complete" not in caught.value.partial
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        requests.get(damaged.url + path, timeout=WITHIN_S)
    started = time.monotonic()
    received = raw(damaged, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert time.monotonic() - started < 5
    assert len(received) > 64 * 1024
    assert not received.endswith(b"0\r\n\r\n")
    assert "an export broke off (request " in damaged.said()
    for _ in range(6):
        assert damaged.get("/health/live").status_code == 200


def test_http_1_0_is_reset_when_an_export_breaks_off(damaged: Service) -> None:
    path = f"/flights?{DAYS}&format=csv"
    for _ in range(4):
        with pytest.raises(ConnectionResetError):
            raw(damaged, f"GET {path} HTTP/1.0\r\n\r\n".encode())
    for _ in range(6):
        assert damaged.get("/health/live").status_code == 200
    assert len(damaged.booted()) == 2
    assert "Traceback" not in damaged.said()


def test_http_1_0_gets_a_whole_export_to_the_end_of_the_connection(service: Service) -> None:
    response, body = asked(service, "GET", f"/flights?{DAYS}")
    assert response.headers["Transfer-Encoding"] == "chunked"
    received = raw(service, f"GET /flights?{DAYS} HTTP/1.0\r\n\r\n".encode())
    assert received.partition(b"\r\n\r\n")[2] == body


def test_clients_that_go_away_leave_their_places_to_others(service: Service) -> None:
    for _ in range(12):
        with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
            connection.sendall(f"GET /flights?{DAYS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            connection.recv(100)
    until(lambda: asked(service, "GET", f"/flights?{DAYS}")[0].status == 200)


@pytest.fixture(scope="module")
def long_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service whose exports are far longer than what sockets hold, with few threads."""
    settings = settings_for(tmp_path_factory.mktemp("long") / "chain")
    import_flights(settings, Generated(40_000))
    with serving(settings.folder, FLIGHTCHAIN_THREADS=4, FLIGHTCHAIN_LAB="yes", **NEVER) as service:
        yield service


@pytest.mark.long
def test_memory_does_not_grow_with_an_export(long_ledger: Service) -> None:
    workers = {str(pid) for pid in long_ledger.workers()}

    def have_all_exported() -> bool:
        response, _ = asked(long_ledger, "GET", f"/flights?{DAYS}&as_of=4")
        workers.discard(response.headers["X-Worker"])
        return not workers

    until(have_all_exported)
    before = {pid: megabytes(pid, "VmHWM") for pid in long_ledger.workers()}
    for _ in range(2):
        assert len(asked(long_ledger, "GET", f"/flights?{DAYS}")[1]) > 16_000_000
    assert all(megabytes(pid, "VmHWM") - before[pid] < 12 for pid in before)


def test_everything_is_answered_while_exports_wait_for_their_clients(long_ledger: Service) -> None:
    export = f"GET /flights?{DAYS} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with ExitStack() as open_:
        address = ("127.0.0.1", long_ledger.port)
        held = [open_.enter_context(socket.create_connection(address, 10)) for _ in range(8)]
        for connection in held:
            connection.sendall(export)
        with ThreadPoolExecutor(4) as pool:
            paths = ["/blocks/1"] * 12
            statuses = [answer.status_code for answer in pool.map(long_ledger.get, paths)]
        assert statuses == [200] * 12
        answers = [connection.recv(12) for connection in held]
        assert sorted(set(answers)) == [b"HTTP/1.1 200", b"HTTP/1.1 503"]
        assert answers.count(b"HTTP/1.1 200") <= 2
