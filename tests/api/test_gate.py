"""Who asks by a foreign name, or with a token in the address, gets nothing and leaves no trace."""

import gzip
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.api.processes import WITHIN_S, Service, serving, until
from tests.api.test_wire import raw
from tests.api.worlds import GOOD, client_of, problem, settings_for, world_in
from tests.cases import each_of

SECRET = "kJ8sW-very_secret"
EVIL = {"Host": "evil.example", "Origin": "http://evil.example"}
PATHS = [
    "/health/live",
    "/health/ready",
    "/tip",
    "/blocks/1",
    "/blocks/1?limit=3",
    "/transactions/1",
    "/metrics",
    "/docs",
    "/openapi.json",
    "/mine",
    "/nothing",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01",
]
WRITES = ["/transactions", "/transactions?mode=async", "/new_transaction", "/transactions/batch"]


# --- in one process ------------------------------------------------------------------------------


def test_a_name_that_is_set_is_answered(tmp_path: Path) -> None:
    world_in(tmp_path)
    with client_of(settings_for(tmp_path, hosts="flights.example.org")) as client:
        assert client.get("/tip", headers={"Host": "flights.example.org"}).status_code == 200
        assert client.get("/tip", headers=EVIL).status_code == 421


def test_a_packed_body_is_refused_by_every_route_that_reads_one(tmp_path: Path) -> None:
    codings = ("gzip", "GZIP", "br", "deflate", "gzip, identity", "zstd")
    bodies = (gzip.compress(json.dumps(GOOD).encode()), json.dumps(GOOD).encode())
    with client_of(settings_for(tmp_path)) as client:
        for path, coding, body in product(WRITES, codings, bodies):
            kind = "application/x-ndjson" if "batch" in path else "application/json"
            headers = {"Content-Encoding": coding, "Content-Type": kind}
            response = client.post(path, data=body, headers=headers)
            problem(response, 415, field="Content-Encoding", value=coding)
    assert not (tmp_path / "mempool").exists()


@pytest.mark.parametrize("coding", ["identity", "Identity", " identity ", ""])
def test_a_body_that_says_it_is_not_packed_is_read(tmp_path: Path, coding: str) -> None:
    world_in(tmp_path)
    with client_of(settings_for(tmp_path)) as client:
        response = client.post("/transactions", json=GOOD, headers={"Content-Encoding": coding})
        assert response.status_code == 202


# --- over the wire, from every kind of worker ----------------------------------------------------


@pytest.fixture(scope="module", params=["asgi", "gthread"])
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp(request.param) / "chain"
    world_in(folder)
    more: dict[str, Any] = {"FLIGHTCHAIN_WORKER_TYPE": request.param, "FLIGHTCHAIN_ACCESS_LOG": 1}
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=3600, **more) as service:
        yield service


def status(service: Service, *lines: str, body: str = "") -> int:
    """Returns what a request of these lines is answered; 0 if the connection just ends."""
    length = [f"Content-Length: {len(body)}"] if body else []
    text = "\r\n".join([*lines, *length, "Connection: close", "", body])
    match = re.match(rb"HTTP/1\.[01] (\d+) ", raw(service, text.encode()))
    return int(match[1]) if match else 0


@each_of("path", PATHS)
def test_only_names_of_ours_are_answered(service: Service, path: str) -> None:
    ask = f"GET {path} HTTP/1.1"
    ours = status(service, ask, f"Host: 127.0.0.1:{service.port}")
    assert ours in {200, 404, 405}
    assert status(service, ask, "Host: localhost") == ours
    assert status(service, ask, "Host: evil.example") == 421
    assert status(service, ask, "Host: evil.example", "X-Forwarded-Host: localhost") == 421
    assert status(service, ask) == 400
    assert status(service, ask, "Host:") == 400
    assert status(service, ask, "Host: localhost", "Host: evil.example") == 400
    assert status(service, ask, "Host: evil.example", "Host: localhost") == 400
    assert status(service, f"GET {path} HTTP/1.0") == ours


def test_a_rebound_name_adds_nothing(service: Service) -> None:
    before = service.json("/tip")
    flight = json.dumps(GOOD)
    lines = ("Host: evil.example", "Origin: http://evil.example", "Content-Type: application/json")
    for path in WRITES:
        assert status(service, f"POST {path} HTTP/1.1", *lines, body=flight) == 421
    assert service.json("/tip") == before


GIVES_AWAY = [
    f"GET /tip?token={SECRET} HTTP/1.1",
    f"GET /health/live?a=1&Access_Token={SECRET} HTTP/1.1",
    f"GET /nothing?api_key={SECRET} HTTP/1.1",
    f"POST /transactions?%74oken={SECRET} HTTP/1.1",
]
IS_NO_REQUEST = [  # gunicorn's own workers show the line to its sender
    f"GET /tip?token={SECRET} HTTP/9.9",
    f"GET /tip?token={SECRET} nonsense HTTP/1.1",
    f"get /tip?token={SECRET} HTTP/1.1",
    f"GET /tip?authorization={SECRET}",
]


def test_no_token_of_an_address_is_answered_or_logged(service: Service) -> None:
    host = f"Host: 127.0.0.1:{service.port}"
    for ask in GIVES_AWAY + IS_NO_REQUEST:
        text = f"{ask}\r\n{host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        answer = raw(service, text.encode())
        assert answer.startswith(b"HTTP/1.1 400 "), ask
        if ask in GIVES_AWAY or b"problem+json" in answer:
            assert SECRET.encode() not in answer, ask
    until(lambda: service.said().count('"status":400') >= 4)
    assert SECRET not in service.said()
    assert "(hidden: it held a token)" in service.said()


def test_a_token_in_the_header_is_what_is_asked_for(service: Service) -> None:
    headers = {"Authorization": f"Bearer {SECRET}"}
    response = requests.post(
        f"{service.url}/transactions", json=GOOD, headers=headers, timeout=WITHIN_S
    )
    assert response.status_code == 202
    assert SECRET not in service.said()
