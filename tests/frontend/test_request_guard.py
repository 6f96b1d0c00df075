"""The pages answer who asks by a name of theirs, take posts of their own, and keep no token."""

import gzip
import sys
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.datastructures import Headers
from werkzeug.test import create_environ

from frontend.app import HEADERS, create_app
from frontend.request_guard import is_from_own_page
from frontend.settings import Settings, from_environment
from tests.api.processes import Service, free_port, until
from tests.cases import each_of
from tests.frontend.writing import GOOD_FORM
from tests.raw_http import answer_to

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


def test_whoever_logs_a_refused_request_finds_no_token(lonely_pages: FlaskClient) -> None:
    environ = create_environ("/", query_string=f"token={SECRET}")
    lonely_pages.application(environ, lambda *_: print)
    assert SECRET not in environ["QUERY_STRING"] + environ["RAW_URI"]


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


def test_running_pages_log_no_token(tmp_path: Path) -> None:
    port = free_port()
    command, named = (sys.executable, "-m", "frontend"), {"FLIGHTCHAIN_FRONTEND_PORT": port}
    pages = Service(tmp_path / "chain", command=command, **named)

    def answer(line: str, body: str = "") -> bytes:
        lines = (
            line,
            "Host: localhost",
            "Origin: http://localhost",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        kind = "Content-Type: application/x-www-form-urlencoded"
        return answer_to(port, "\r\n".join([*lines, kind, "", body]).encode())

    with pages:
        until(lambda: answer("GET /health/live HTTP/1.1").startswith(b"HTTP/1.1 200 "))
        for line in (
            f"GET /add?token={SECRET} HTTP/1.1",
            f"get /?a=1&Access_Token={SECRET} HTTP/9.9",
            f"GET /?token={SECRET} nonsense HTTP/1.1",
            "POST /add HTTP/1.1",
        ):
            assert SECRET.encode() not in answer(line, f"step=add&TOKEN={SECRET}")
        assert pages.stop() == 0
        assert SECRET not in pages.said()


# --- forms of other sites ------------------------------------------------------------------------

OURS = "http://localhost"  # as Flask's client asks
ACCEPTED = [
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},  # the browser repeats a form without a page, as after its restart
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://localhost"},  # TLS ends at a proxy
    {"Origin": OURS},
    {"Origin": "https://localhost"},
    {"Origin": "http://flights.local:5000", "Host": "Flights.local:5000"},
    {"Origin": "http://[::1]:5000", "Host": "[::1]:5000"},
    {"Referer": f"{OURS}/add"},
    {"Origin": OURS, "Referer": "http://evil.example/"},
]
REFUSED = [
    {},
    {"Sec-Fetch-Site": "cross-site", "Origin": OURS},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8000"},
    {"Sec-Fetch-Site": "same-origin,cross-site"},
    {"Sec-Fetch-Site": ""},
    {"Origin": "http://localhost:8000"},  # another port
    {"Origin": "http://localhost", "Host": "localhost:5000"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://evil.example/localhost"},
    {"Origin": "http://evil.example@localhost:1"},
    {"Origin": f"{OURS},http://evil.example"},
    {"Origin": "localhost"},
    {"Origin": "null"},
    {"Origin": "null", "Referer": f"{OURS}/add"},
    {"Referer": "http://evil.example/localhost"},
    {"Referer": "http://["},
    {"Referer": ""},
]


@each_of("headers", ACCEPTED)
@each_of("path", ["/add", "/upload", "/upload.json"])
def test_our_form_is_read(lonely_pages: FlaskClient, path: str, headers: dict[str, str]) -> None:
    response = lonely_pages.post(path, data=GOOD_FORM, headers=headers)
    assert response.status_code != 403


@each_of("headers", REFUSED)
@each_of("path", ["/add", "/upload", "/upload.json", "/nothing"])
def test_a_foreign_form_is_refused(
    lonely_pages: FlaskClient, path: str, headers: dict[str, str]
) -> None:
    response = lonely_pages.post(path, data=GOOD_FORM, headers=headers)
    assert response.status_code == 403
    assert "Nothing was added" in response.text
    assert response.is_json is (path == "/upload.json")
    assert GOOD_FORM["ORIGIN_CITY_NAME"] not in response.text
    if (sender := headers.get("Origin", "null")) not in {"null", ""}:
        assert sender in response.text


def test_a_request_without_a_host_comes_from_no_page_of_ours() -> None:
    assert not is_from_own_page(Headers({"Referer": "http:///add"}))
    assert not is_from_own_page(Headers({"Origin": "http://"}))
