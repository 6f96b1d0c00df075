"""Trying it from the page: what the shell runs, where links lead, what a form asks; and serving."""

import json
import subprocess
from collections.abc import Iterator
from functools import cache
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
from tests.api.openapi_small import Json, query, small
from tests.api.reading_html import Element, Page, sent_by
from tests.api.worlds import client_of, problem

INTEGER = {"type": "integer"}


def operation(spec: Json, name: str = "one") -> Element:
    return page_of(docs.page(spec)).by_id(name)


@cache
def page_of(html: str) -> Page:
    return Page(html)


def run(command: str) -> list[str]:
    """What a shell hands to curl."""
    script = 'curl() { printf "%s\\0" "$@"; }; TOKEN="a secret" KEY="a key"\n' + command
    done = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split("\0")[:-1]


def commands(element: Element) -> list[list[str]]:
    return [run(one.text) for one in element.all("pre") if one.get("class") == "command"]


def test_a_shell_asks_for_the_examples(described: Json) -> None:
    assert commands(operation(described, "prove_flight_counter")) == [
        [
            (
                "http://127.0.0.1:8000/flight_counter/proof?ORIGIN_CITY_NAME=New%20York,%20NY"
                "&DEST_CITY_NAME=Chicago,%20IL&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31"
            )
        ]
    ]
    assert commands(operation(described, "get_transaction")) == [
        ["http://127.0.0.1:8000/transactions/0"]
    ]


def test_a_shell_sends_the_example_of_a_body(described: Json) -> None:
    (command,) = commands(operation(described, "add_transaction"))
    *before, sent = command
    assert before == [
        "http://127.0.0.1:8000/transactions",
        *("--header", "Content-Type: application/json"),
        "--data-binary",
    ]
    body = described["paths"]["/transactions"]["post"]["requestBody"]["content"]
    assert json.loads(sent) == body["application/json"]["example"]


def test_a_shell_sends_each_media_type_as_it_is(described: Json) -> None:
    body = described["paths"]["/transactions/batch"]["post"]["requestBody"]["content"]
    found = commands(operation(described, "add_batch"))
    assert [(command[2], command[-1].splitlines()) for command in found] == [
        (f"Content-Type: {media_type}", content["example"].splitlines())
        for media_type, content in body.items()
    ]
    assert len(found) > 1


@pytest.mark.parametrize(
    "value", ["$(id)`id`", "a'b\"c", "\\", "!x; y | z & #", "ü\n", "[1-3]{a,b}"]
)
def test_nothing_in_an_example_reaches_the_shell(value: str) -> None:
    parameter = query("q", {"type": "string"}, required=True, example=value)
    ((url,),) = commands(operation(small(parameters=[parameter])))
    assert parse_qsl(urlsplit(url).query) == [("q", value)]
    assert url.isascii()
    assert not set(url) & set("[]{}")  # curl would take them for a pattern


# --- forms ---------------------------------------------------------------------------------------

FIELDS: list[tuple[Json, str, list[Json]]] = [
    (
        query("n", INTEGER, required=True, example=7),
        "?n=7",
        [{"type": "number", "required": None, "value": "7"}],
    ),
    (query("n", INTEGER, example=7), "?", [{"type": "checkbox", "value": "7"}]),
    (query("n", {"type": "integer", "default": 10}, example=10), "?n=10", [{"required": None}]),
    (
        query("n", {"type": "integer", "minimum": 1, "maximum": 5}, required=True, example=1),
        "?n=1",
        [{"min": "1", "max": "5"}],
    ),
    (
        query("d", {"type": "string", "format": "date"}, required=True, example="2013-01-01"),
        "?d=2013-01-01",
        [{"type": "date"}],
    ),
    (
        query("q", {"type": "string", "default": ""}, example="New"),
        "?q=New",
        [{"type": "text"}],
    ),
    (query("e", {"enum": ["a", "b"]}), "?", [{"type": "radio"}, {"value": "b"}]),
    (query("e", {"enum": ["a"]}), "?", [{"type": "checkbox", "value": "a"}]),
    (query("e", {"enum": ["a", "b"], "default": "b"}, example="a"), "?e=b", [{}]),
    (query("e", {"enum": ["a", "b"]}, required=True, example="b"), "?e=b", [{}]),
]


@pytest.mark.parametrize(("parameter", "asked", "attributes"), FIELDS)
def test_a_form_asks_for_the_examples_and_sends_nothing_empty(
    parameter: Json, asked: str, attributes: list[Json]
) -> None:
    parameter["schema"].setdefault("type", "string")
    (form,) = operation(small(parameters=[parameter])).all("form")
    assert form.get("method") == "get"
    assert sent_by(form) == f"/one{asked}"
    fields = form.all("input", "select")
    assert {one.get("name") for one in fields} == {parameter["name"]}
    for one, expected in zip(fields, attributes, strict=True):
        assert {name: one.get(name) or None for name in expected} == expected
    if "required" not in attributes[0] and parameter["schema"].get("default") == "":
        assert "required" not in fields[0].attributes


def test_links_lead_where_there_is_nothing_to_fill_in(described: Json) -> None:
    def links(name: str) -> list[str]:
        hrefs = [one.get("href") for one in operation(described, name).all("a")]
        return [href for href in hrefs if href.startswith("/")]

    assert links("tip") == ["/tip"]
    assert links("get_transaction") == ["/transactions/0"]
    assert links("get_block") == ["/blocks/337"]
    assert links("average_delays") == []
    (form,) = operation(described, "get_block").all("form")
    assert sent_by(form) == "/blocks/337?offset=0&limit=10"


def test_only_what_reads_can_be_tried_on_the_page(described: Json) -> None:
    for name in ("add_transaction", "add_batch", "new_transaction"):
        tried = operation(described, name)
        assert tried.all("form") == []
        assert not any(one.get("href").startswith("/") for one in tried.all("a"))


def test_what_stands_in_an_address_is_quoted() -> None:
    path = {**query("x", {}, required=True, example="a/../b?c#d"), "in": "path"}
    assert trying.address("/one/{x}", [path]) == "/one/a%2F..%2Fb%3Fc%23d"
    given = [("l", "a b"), ("ü", 1.5), ("b", True)]
    parameters = [query(name, {}, required=True, example=value) for name, value in given]
    assert trying.address("/one", parameters) == "/one?l=a%20b&%C3%BC=1.5&b=true"


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
        return small()

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
    page = page_of(reader.get("/docs").get_data(as_text=True))
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
    # no miner runs here, and there is no cluster
    assert refused == {"/health/ready": 503, "/receipts/node0-17": 404}
