"""The pages answer only who asks by a name of theirs, and never keep a token of an address."""

import gzip
import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from frontend.app import HEADERS, create_app
from frontend.errors import InvalidSetting
from frontend.settings import Settings, from_environment
from tests.api.processes import ROOT, environment, free_port, until

pytestmark = pytest.mark.slow

SECRET = "kJ8sW-very_secret"
EVIL = {"Host": "evil.example", "Origin": "http://evil.example"}
PATHS = ["/", "/add", "/upload", "/upload.json", "/health/live", "/static/style.css", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_name_gets_a_plain_page(
    lonely_pages: FlaskClient, path: str, method: str
) -> None:
    response = lonely_pages.open(path, method=method, headers=EVIL)
    assert response.status_code == 421
    assert response.content_type == "text/html; charset=utf-8"
    assert "FLIGHTCHAIN_HOSTS" in response.text
    assert "<form" not in response.text
    assert "csrf" not in response.text
    assert "Set-Cookie" not in response.headers
    assert response.headers["Cache-Control"] == "no-store"
    assert {name: response.headers[name] for name in HEADERS} == HEADERS


def test_what_a_foreign_name_says_is_shown_as_text(lonely_pages: FlaskClient) -> None:
    response = lonely_pages.get("/", headers={"Host": "<script>"})
    assert response.status_code == 400
    assert "<script>" not in response.text


@pytest.mark.parametrize("path", ["/", "/add", "/upload.json", "/nothing"])
def test_a_token_in_the_address_is_refused(lonely_pages: FlaskClient, path: str) -> None:
    response = lonely_pages.get(f"{path}?a=1&TOKEN={SECRET}")
    assert response.status_code == 400
    assert "Authorization: Bearer" in response.text
    assert SECRET not in f"{response.text}{response.headers}"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "identity, gzip", "unknown"])
@pytest.mark.parametrize("path", ["/add", "/upload", "/upload.json?action=check"])
def test_a_packed_body_is_refused(lonely_pages: FlaskClient, path: str, coding: str) -> None:
    headers = {"Content-Encoding": coding, "Content-Type": "text/csv", "Origin": "http://localhost"}
    response = lonely_pages.post(path, data=gzip.compress(b"YEAR\n2013\n"), headers=headers)
    assert response.status_code == 415
    assert "Content-Encoding" in response.text
    is_problem = response.mimetype == "application/problem+json"
    assert is_problem is path.startswith("/upload.json")


def test_names_that_are_set_are_answered() -> None:
    settings = from_environment({"FLIGHTCHAIN_HOSTS": "flights.example.org"})
    client = create_app(settings).test_client()
    for host, status in (("flights.example.org", 200), ("localhost", 200), ("evil.example", 421)):
        assert client.get("/health/live", headers={"Host": host}).status_code == status


def test_pages_for_all_addresses_take_addresses_and_no_names() -> None:
    client = create_app(Settings(host="0.0.0.0")).test_client()
    for host, status in (("192.168.1.7:5000", 200), ("evil.example", 421)):
        assert client.get("/health/live", headers={"Host": host}).status_code == status


def test_a_name_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidSetting, match="FLIGHTCHAIN_HOSTS 'a:80': 'a:80' is not a name"):
        from_environment({"FLIGHTCHAIN_HOSTS": "a:80"})


# --- a process -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of a frontend whose backend is away, and its log."""
    folder, port = tmp_path_factory.mktemp("pages"), free_port()
    more = {"FLIGHTCHAIN_FRONTEND_PORT": port, "FLIGHTCHAIN_BACKEND_URL": "http://127.0.0.1:1"}
    log = folder / "log"
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "frontend"],
            cwd=ROOT,
            env=environment(folder, **more),
            stdout=file,
            stderr=file,
        )
    try:
        until(lambda: asked(port, "GET /health/live HTTP/1.1", "Host: localhost")[0] == 200)
        yield port, log
    finally:
        process.terminate()
        process.wait(20)


def asked(port: int, *lines: str) -> tuple[int, str]:
    """Status and all of the answer to a request of these lines; status 0 without one."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        try:
            connection.connect()
        except ConnectionRefusedError:
            return 0, ""
        assert connection.sock is not None
        connection.sock.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        received = b""
        while part := connection.sock.recv(65536):
            received += part
    return int(received.split()[1]), received.decode()


@pytest.mark.parametrize("path", ["/", "/add", "/health/live"])
def test_only_our_names_are_answered(running: tuple[int, Path], path: str) -> None:
    port, _ = running
    ask = f"GET {path} HTTP/1.1"
    ours = asked(port, ask, f"Host: 127.0.0.1:{port}")[0]
    assert ours in {200, 503}
    assert asked(port, ask, "Host: evil.example")[0] == 421
    assert asked(port, ask)[0] == 400
    assert asked(port, ask, "Host: localhost", "Host: evil.example")[0] == 400
    assert asked(port, f"GET {path} HTTP/1.0")[0] == ours


def test_no_token_of_an_address_is_logged(running: tuple[int, Path]) -> None:
    port, log = running
    for ask in (
        f"GET /?token={SECRET} HTTP/1.1",
        f"GET /add?access_token={SECRET} HTTP/1.1",
        f"GET /add?access_token={SECRET} nonsense HTTP/1.1",
        f"GET /?a=1&Authorization={SECRET}",
    ):
        status, answer = asked(port, ask, f"Host: 127.0.0.1:{port}")
        assert status == 400
        assert SECRET not in answer
    assert SECRET not in log.read_text()
