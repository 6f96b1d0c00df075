"""A POST is accepted from the pages themselves, and from nobody else."""

from flask.testing import FlaskClient
from werkzeug.datastructures import Headers

from frontend.forgery import is_from_own_page
from tests.cases import each_of
from tests.frontend.writing import GOOD_FORM

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
