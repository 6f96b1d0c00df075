"""Trying it from the page: what the shell runs, where links lead, what a form asks; and serving."""

import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient

from backend.api import SERVICE, docs, routes
from backend.api.docs import trying
from backend.api.routes import Table
from backend.api.specification import document
from backend.settings import Settings
from tests.api.openapi_parts import Json, query
from tests.api.openapi_sample import sample, small
from tests.api.reading_html import Element, Page, sent_by
from tests.api.worlds import client_of, problem

INTEGER = {"type": "integer", "examples": [7]}


def operation(spec: Json, name: str = "one") -> Element:
    return Page(docs.page(spec)).by_id(name)


def run(command: str) -> list[str]:
    """What a shell hands to curl."""
    script = 'curl() { printf "%s\\0" "$@"; }; TOKEN="a secret" KEY="a key"\n' + command
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split("\0")[:-1]


def commands(element: Element) -> list[list[str]]:
    return [run(one.text) for one in element.all("pre") if one.get("class") == "command"]


def test_a_shell_asks_for_the_examples() -> None:
    spec = sample()
    assert commands(operation(spec, "flight_counter")) == [
        [
            (
                "http://127.0.0.1:8000/flight_counter?ORIGIN_CITY_NAME=New%20York,%20NY"
                "&DEST_CITY_NAME=Coeur%20d%27Alene,%20ID"
                "&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31"
            )
        ]
    ]
    assert commands(operation(spec, "transaction")) == [["http://127.0.0.1:8000/transactions/0"]]
    assert commands(operation(spec, "delete-transactions-TRANSACTION-ID")) == [
        ["--request", "DELETE", "http://127.0.0.1:8000/transactions/0", "--header", "X-Key: a key"]
    ]


def test_a_shell_sends_the_example_of_a_body() -> None:
    assert commands(operation(sample(), "add_transaction")) == [
        [
            "http://127.0.0.1:8000/transactions",
            *("--header", "Content-Type: application/json"),
            *("--header", "Authorization: Bearer a secret"),
            *("--header", "X-Request-ID: it's mine"),
            "--data-binary",
            (
                '{"FL_DATE":"2013-01-01","OP_CARRIER_FL_NUM":9999,'
                '"ORIGIN_CITY_NAME":"Coeur d\'Alene, ID"}'
            ),
        ]
    ]


def test_a_shell_sends_each_media_type_as_it_is() -> None:
    lines, table = commands(operation(sample(), "add_batch"))
    assert lines[2] == "Content-Type: application/x-ndjson"
    assert lines[-1].count("\n") == 2
    assert table[-1] == 'FL_DATE,ORIGIN_CITY_NAME\n2013-01-01,"O\'Hare"\n'


@pytest.mark.parametrize(
    "value", ["$(id)`id`", "a'b\"c", "\\", "!x; y | z & #", "ü\n", "[1-3]{a,b}"]
)
def test_nothing_in_an_example_reaches_the_shell(value: str) -> None:
    parameter = query("q", {"type": "string"}, "", required=True, example=value)
    ((url,),) = commands(operation(small(parameters=[parameter])))
    assert parse_qsl(urlsplit(url).query) == [("q", value)]
    assert url.isascii()
    assert not set(url) & set("[]{}")  # curl would take them for a pattern


def test_a_server_may_be_elsewhere_or_below_a_path() -> None:
    for url, asked, action in (
        ("https://flights.example:8443/", "https://flights.example:8443/one?n=7", "/one"),
        ("/api/", "http://127.0.0.1:8000/api/one?n=7", "/api/one"),
        ("/", "http://127.0.0.1:8000/one?n=7", "/one"),
    ):
        spec = small(parameters=[query("n", INTEGER, "", required=True)])
        spec["servers"] = [{"url": url}]
        assert commands(operation(spec)) == [[asked]]
        assert operation(spec).all("form")[0].get("action") == action


# --- forms ---------------------------------------------------------------------------------------

FIELDS: list[tuple[Json, str, list[Json]]] = [
    (query("n", INTEGER, "", required=True), "?n=7", [{"type": "number", "required": None}]),
    (query("n", INTEGER, "", required=True, example=9), "?n=9", [{"value": "9"}]),
    (query("n", INTEGER, ""), "?", [{"type": "checkbox", "value": "7"}]),
    (query("n", {"type": "integer"}, ""), "?", [{"type": "checkbox", "value": "1"}]),
    (query("n", {"type": "integer", "default": 10}, ""), "?n=10", [{"required": None}]),
    (
        query("n", {"type": "integer", "minimum": 1, "maximum": 5}, "", required=True),
        "?n=1",
        [{"min": "1", "max": "5"}],
    ),
    (
        query("d", {"type": "string", "format": "date"}, "", required=True),
        "?d=2013-01-01",
        [{"type": "date"}],
    ),
    (
        query("q", {"type": "string", "default": ""}, "", example="New"),
        "?q=New",
        [{"type": "text"}],
    ),
    (query("e", {"enum": ["a", "b"]}, ""), "?", [{"type": "radio"}, {"value": "b"}]),
    (query("e", {"enum": ["a"]}, ""), "?", [{"type": "checkbox", "value": "a"}]),
    (query("e", {"enum": ["a", "b"], "default": "b"}, "", example="a"), "?e=b", [{}]),
    (query("e", {"enum": ["a", "b"]}, "", required=True, example="b"), "?e=b", [{}]),
    (query("b", {"type": "boolean"}, "", example=True), "?", [{"value": "true"}]),
    (query("b", {"type": "boolean"}, "", required=True), "?b=true", [{}]),
    (
        query("l", {"type": "array", "items": {"type": "string"}}, "", example=["x", "y"]),
        "?",
        [{"type": "checkbox", "value": "x"}, {"type": "checkbox", "value": "y"}],
    ),
]


@pytest.mark.parametrize(("parameter", "asked", "attributes"), FIELDS)
def test_a_form_asks_for_the_examples_and_sends_nothing_empty(
    parameter: Json, asked: str, attributes: list[Json]
) -> None:
    (form,) = operation(small(parameters=[parameter])).all("form")
    assert form.get("method") == "get"
    assert sent_by(form) == f"/one{asked}"
    fields = form.all("input", "select")
    assert {one.get("name") for one in fields} == {parameter["name"]}
    for one, expected in zip(fields, attributes, strict=True):
        assert {name: one.get(name) or None for name in expected} == expected
    if "required" not in attributes[0] and parameter["schema"].get("default") == "":
        assert "required" not in fields[0].attributes


def test_links_lead_where_there_is_nothing_to_fill_in() -> None:
    spec = sample()

    def links(name: str) -> list[str]:
        hrefs = [one.get("href") for one in operation(spec, name).all("a")]
        return [href for href in hrefs if href.startswith("/")]

    assert links("tip") == ["/tip"]
    assert links("transaction") == ["/transactions/0", "/transactions/336775"]
    assert links("block") == ["/blocks/300"]
    assert links("average_delays") == []
    (form,) = operation(spec, "block").all("form")
    assert sent_by(form) == "/blocks/300?offset=0"


def test_only_what_reads_and_is_open_can_be_tried_on_the_page() -> None:
    spec = sample()
    spec["paths"]["/tip"]["get"]["security"] = [{"bearer": []}]
    for name in ("add_transaction", "add_batch", "tip"):
        tried = operation(spec, name)
        assert tried.all("form") == []
        assert not any(one.get("href").startswith("/") for one in tried.all("a"))


def test_what_stands_in_an_address_is_quoted() -> None:
    given = trying.Given("x", "path", True, {}, ["a/../b?c#d"])
    assert trying.address("/one/{x}", [given]) == "/one/a%2F..%2Fb%3Fc%23d"
    assert trying.with_query("/one", [("l", ["a b", True]), ("ü", 1.5)]) == (
        "/one?l=a%20b&l=true&%C3%BC=1.5"
    )


# --- over HTTP -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(default_chain: Settings) -> Iterator[FlaskClient]:
    with client_of(default_chain) as client:
        yield client


def test_the_page_is_served_with_its_policy(reader: FlaskClient) -> None:
    response = reader.get("/docs")
    assert (response.status_code, response.mimetype) == (200, "text/html")
    assert response.get_data(as_text=True) == docs.page(
        document(reader.application.extensions[SERVICE].table)
    )
    assert response.headers["Content-Security-Policy"] == docs.content_security_policy()
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "no-cache"
    assert reader.head("/docs").status_code == 200


def test_the_page_is_compressed_and_not_sent_twice(reader: FlaskClient) -> None:
    response = reader.get("/docs", headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert len(response.get_data()) < 50_000
    for condition in (response.headers["ETag"], "*"):
        headers = {"If-None-Match": condition, "Accept-Encoding": "gzip"}
        again = reader.get("/docs", headers=headers)
        assert (again.status_code, again.get_data()) == (304, b"")


def test_the_document_is_asked_for_once_and_not_before_the_page_is() -> None:
    asked: list[int] = []

    def spec() -> Any:
        asked.append(1)
        return sample()

    app = Flask(__name__)
    routes.install(app, Table(docs.rows(spec)))
    assert asked == []
    client = app.test_client()
    tags = {client.get("/docs").headers["ETag"] for _ in range(3)}
    assert (len(tags), len(asked)) == (1, 1)


def test_the_page_takes_no_parameters(reader: FlaskClient) -> None:
    assert problem(reader.get("/docs?x=1"), 400)["field"] == "x"
    assert problem(reader.post("/docs"), 405)


def test_what_links_and_forms_ask_is_answered(reader: FlaskClient) -> None:
    """None of them is refused, as it stands or with one of its choices."""
    page = Page(reader.get("/docs").get_data(as_text=True))
    forms = page.all("form")
    asked = [sent_by(form) for form in forms]
    for form in forms:
        choices = [one for one in form.all("input") if one.get("type") in {"radio", "checkbox"}]
        asked += [f"{sent_by(form)}&{one.get('name')}={one.get('value')}" for one in choices]
    asked += [one.get("href") for one in page.all("a") if one.get("href").startswith("/")]
    assert len(asked) >= 20
    refused = {}
    for path in asked:
        with reader.get(path) as answer:
            if answer.status_code != 200:
                refused[path] = answer.status_code
    assert refused == {"/health/ready": 503}  # no miner runs here
