"""The page of the service's OpenAPI description: whatever the document names is on it, safely."""

import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.api import docs
from backend.api.encodings import compressed
from tests.api.held import described
from tests.api.processes import ran
from tests.api.reading_html import Page

DOCUMENT = described()
MOST_BYTES = 50_000
SERVER = "http://127.0.0.1:8123"
STRUCTURE = {"$ref", "type", "in", "name", "operationId", "tags", "required", "security", "scheme"}
EVIL = "<script>alert(1)</script>\"'`<b>`[x](javascript:alert(1)) {{ 7 * 7 }} &amp;"


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(docs.page(DOCUMENT, SERVER))


def names_in(part: Any, key: str = "") -> Iterator[str]:
    """What is named in a document: paths, members, headers, media types, schemas, parameters."""
    if isinstance(part, list):
        for value in part:
            yield from names_in(value)
    elif isinstance(part, dict):
        if key in {"properties", "paths", "headers", "content", "schemas"}:
            yield from part
        if "in" in part and isinstance(part.get("name"), str):
            yield part["name"]
        for name, value in part.items():
            yield from names_in(value, name)


def texts_in(part: Any, key: str = "") -> Iterator[str]:
    """The texts of a document that are written for people."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name != "headers":  # what a header means stands in /openapi.json
                yield from texts_in(value, name)
    elif isinstance(part, list):
        for value in part:
            yield from texts_in(value)
    elif key in {"description", "summary"}:
        yield " ".join(str(part).replace("`", "").split())


def test_every_name_and_every_text_is_on_the_page(page: Page) -> None:
    names = set(names_in(DOCUMENT))
    assert {"/blocks/{HEIGHT}", "ARR_DELAY", "ETag", "text/csv", "Leg"} <= names
    assert {name for name in names if name not in page.words} == set()
    shown = {name: part for name, part in DOCUMENT.items() if name != "servers"}
    assert {text for text in texts_in(shown) if text not in page.words} == set()


def test_a_value_is_any_only_if_the_document_says_nothing_of_it(page: Page) -> None:
    def parts_in(schema: Any) -> Iterator[Any]:
        yield schema
        for part in (*schema.get("oneOf", ()), *filter(None, [schema.get("items")])):
            yield from parts_in(part)

    for name, schema in DOCUMENT["components"]["schemas"].items():
        links = {link.get("href") for link in page.by_id(f"schema-{name}").all("a")}
        for member, of_member in schema["properties"].items():
            parts = list(parts_in(of_member))
            assert {"#schema-" + docs.name_of(part) for part in parts if "$ref" in part} <= links
            is_known = of_member.keys() - {"description"}
            assert ("any value" in docs.kind_of(of_member)) != bool(is_known), (name, member)


def test_every_operation_has_a_place_to_which_the_contents_lead(page: Page) -> None:
    (nav,) = page.all("nav")
    links = {link.get("href").removeprefix("#") for link in nav.all("a")}
    parts = [part for item in DOCUMENT["paths"].values() for part in item.values()]
    operations = {part["operationId"] for part in parts}
    assert links == {*operations, "schemas"}
    ids = [element.get("id") for element in page.elements() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    anchors = [link.get("href") for link in page.all("a") if link.get("href").startswith("#")]
    assert [anchor for anchor in anchors if anchor[1:] not in ids] == []


def test_every_link_of_an_example_is_answered(client: FlaskClient, page: Page) -> None:
    links = [link.get("href") for link in page.all("a") if link.get("href").startswith("/")]
    statuses = {link: client.get(link, buffered=True).status_code for link in links}
    assert {*statuses.values()} <= {200, 404, 503}, statuses
    assert len(statuses) > 25


def test_a_shell_sends_the_examples(page: Page) -> None:
    def run(command: str) -> list[str]:
        script = f'curl() {{ printf "%s\\0" "$@"; }}\n{command}'
        return ran("sh", "-c", script).stdout.split("\0")[:-1]

    body = DOCUMENT["paths"]["/transactions/batch"]["post"]["requestBody"]["content"]
    sent = [run(pre.text) for pre in page.by_id("add_batch").all("pre")]
    assert [(words[2], words[-1].splitlines()) for words in sent] == [
        (f"Content-Type: {kind}", content["example"].splitlines()) for kind, content in body.items()
    ]
    (words,) = [run(pre.text) for pre in page.by_id("prove_flight_counter").all("pre")]
    cities = "ORIGIN_CITY_NAME=New%20York,%20NY&DEST_CITY_NAME=Chicago,%20IL"
    days = "INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31"
    assert words == [f"{SERVER}/flight_counter/proof?{cities}&{days}"]


def test_the_commands_of_an_operation_use_its_method(page: Page) -> None:
    methods = {"--data-binary": "POST", "--request POST": "POST", "--request DELETE": "DELETE"}
    for item in DOCUMENT["paths"].values():
        for method, part in item.items():
            for command in page.by_id(part["operationId"]).all("pre"):
                used = {methods[option] for option in methods if option in command.text} or {"GET"}
                assert used == {method.upper()}, command.text


def test_whether_a_call_needs_a_token_is_said(page: Page) -> None:
    said = {"fetch_month": "It needs a token", "add_batch": "It may need a token"}
    for name, words in said.items():
        assert words in page.by_id(name).words
    assert "a token (" not in page.by_id("tip").words


def test_whatever_the_document_says_is_text(page: Page) -> None:
    def spoiled(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            return {name: spoiled(value, name) for name, value in part.items()}
        if isinstance(part, list):
            return [spoiled(value) for value in part]
        return part if not isinstance(part, str) or key in STRUCTURE else part + EVIL

    spoiled_page = Page(docs.page(spoiled(DOCUMENT), SERVER))
    assert spoiled_page.words.count("<script>alert(1)</script>") > 200
    assert "{{ 7 * 7 }} &amp;" in spoiled_page.words
    tags = {element.tag for element in page.elements()} | {"code"}
    assert {element.tag for element in spoiled_page.elements()} <= tags
    assert all(not link.get("href").startswith("javascript") for link in spoiled_page.all("a"))


def test_nothing_is_fetched_and_the_policy_allows_the_style_alone() -> None:
    html = docs.page(DOCUMENT, SERVER)
    page = Page(html)
    for tag in page.elements():
        for name in {"href", "src", "action"} & tag.attributes.keys():
            assert tag.get(name) == "data:," or re.match(r"#|/(?!/)", tag.get(name)), tag
    assert page.all("script", "iframe", "object", "embed", "img", "base", "form") == []
    (style,) = re.findall("<style>(.*?)</style>", html, re.DOTALL)
    assert not re.search(r"url\(|@import|@font-face", style)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = docs.content_security_policy()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy
    assert len(compressed("gzip", html.encode())) <= MOST_BYTES


def test_it_is_served_with_its_policy_and_a_tag(client: FlaskClient) -> None:
    first = client.get("/docs")
    assert first.headers["Content-Type"] == "text/html; charset=utf-8"
    assert first.headers["Content-Security-Policy"] == docs.content_security_policy()
    again = client.get("/docs", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304


def test_its_commands_ask_the_host_that_was_asked(client: FlaskClient) -> None:
    for host in ("127.0.0.2:8001", "[::1]:82", "localhost"):
        commands = [
            pre.text for pre in Page(client.get("/docs", headers={"Host": host}).text).all("pre")
        ]
        assert {text for text in commands if f"http://{host}/" not in text} == set()
