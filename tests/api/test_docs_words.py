"""The words of the page: schemas, references, and what little of Markdown it knows."""

import re
from typing import Any

import pytest

from backend.api import docs
from backend.api.docs.prose import prose
from backend.api.docs.references import BrokenReference
from backend.errors import FlightchainError
from tests.api.openapi_parts import Json
from tests.api.openapi_sample import small
from tests.api.reading_html import Element, Page, row


def with_schema(schema: Any) -> Element:
    """The page's section on a component with this schema."""
    spec = small()
    spec["components"] = {"schemas": {"One": schema, "Flight": {"type": "object"}}}
    return Page(docs.page(spec)).by_id("schema-One")


IN_WORDS: list[tuple[Any, str]] = [
    ({"type": "integer"}, "integer"),
    ({"type": ["integer", "null"]}, "integer or null"),
    ({"type": ["string", "integer", "null"]}, "string or integer or null"),
    (
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
        "integer or null at least 0",
    ),
    ({"oneOf": [{"$ref": "#/components/schemas/Flight"}, {"type": "null"}]}, "Flight or null"),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "either string or integer"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
    ({"allOf": [{"$ref": "#/components/schemas/Flight"}, {"type": "object"}]}, "Flight and object"),
    ({"type": "array", "items": {"$ref": "#/components/schemas/Flight"}}, "array of Flight"),
    ({"type": "array", "items": {"type": ["integer", "null"]}}, "array of (integer or null)"),
    ({"items": {"type": "string", "maxLength": 1}}, "array of string each at most 1 character"),
    (
        {"type": "object", "anyOf": [{"required": ["a"]}]},
        'object anyOf [{"required":["a"]}]',
    ),
    ({"type": "array"}, "array"),
    (
        {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": True},
        "array exactly 2 items; no item twice",
    ),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of integer by name"),
    ({"type": "object", "additionalProperties": True}, "object of anything by name"),
    ({"type": "object", "additionalProperties": False}, "object no other members"),
    ({"type": "object", "minProperties": 1}, "object at least 1 member"),
    ({"enum": ["a", "b"]}, "string one of a, b"),
    ({"enum": [1, None, "c"]}, "any value one of 1, null, c"),
    ({"enum": ["a"]}, "string only a"),
    ({"const": 4}, "any value always 4"),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "number at most 1; more than 0"),
    (
        {"type": "number", "exclusiveMaximum": 9, "multipleOf": 0.5},
        "number less than 9; a multiple of 0.5",
    ),
    ({"type": "integer", "minimum": -3, "maximum": -3}, "integer exactly -3"),
    ({"type": "string", "pattern": "^<a>$"}, "string pattern ^<a>$"),
    ({"type": "string", "default": ""}, 'string default ""'),
    (
        {"type": "string", "deprecated": True, "writeOnly": True},
        "string only in requests; deprecated",
    ),
    ({"type": "string", "contentEncoding": "base64"}, "string contentEncoding base64"),
    ({"not": {"type": "null"}}, 'any value not {"type":"null"}'),
    ({"title": "One"}, "any value"),
    (True, "anything"),
    (False, "nothing"),
    ({}, "any value"),
]


@pytest.mark.parametrize(("schema", "words"), IN_WORDS)
def test_a_schema_is_told_in_words(schema: Any, words: str) -> None:
    told = with_schema(schema).words.removeprefix("One # ")
    assert told == words


def test_members_within_members_have_their_path_as_name() -> None:
    inner = {"type": "object", "required": ["b"], "properties": {"b": {"type": "null"}}}
    members = {
        "a": inner,
        "list": {"type": "array", "items": {"type": "array", "items": inner}},
        "map": {"type": "object", "additionalProperties": inner},
        "perhaps": {"anyOf": [inner, {"type": "null"}]},
        "flight": {"$ref": "#/components/schemas/Flight"},
    }
    schema = {"type": "object", "properties": members, "additionalProperties": {"type": "integer"}}
    names = [one.all("th")[0].words for one in with_schema(schema).all("tr")[1:]]
    assert names == [
        "a optional",
        "a.b required",
        "list optional",
        "list[][].b required",
        "map optional",
        "map.*.b required",
        "perhaps optional",
        "perhaps.b required",
        "flight optional",
        "* optional",
    ]


def test_what_is_made_up_has_all_members() -> None:
    members = {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}, "c": {"const": 3}}
    parts = {"allOf": [{"properties": {"d": {"enum": ["x", "y"]}}}], "properties": members}
    (example,) = with_schema(parts).all("details")
    assert example.words == (
        'Example (values made up from the schema) { "d": "x", "a": 1, "b": "text", "c": 3 }'
    )


def test_a_schema_that_holds_itself_has_an_end() -> None:
    me = {"$ref": "#/components/schemas/One"}
    section = with_schema({"type": "object", "properties": {"left": me, "right": me}})
    assert [link.get("href") for link in section.all("a")][1:] == ["#schema-One"] * 2


# --- references ----------------------------------------------------------------------------------


def test_an_operation_may_be_told_by_references_alone() -> None:
    spec = small(parameters=[{"$ref": "#/components/parameters/a~1b"}])
    spec["components"] = {
        "parameters": {
            "a/b": {"$ref": "#/components/parameters/c", "description": "said besides"},
            "c": {"name": "c", "in": "query", "schema": {"type": "integer"}},
        }
    }
    assert row(Page(docs.page(spec)).by_id("one"), "c")[2] == "said besides"


BROKEN: list[tuple[str, str]] = [
    ("#/components/schemas/Flihgt", "names nothing; there is no 'Flihgt'"),
    ("#/components/parameters/x", "names nothing; there is no 'parameters'"),
    ("#/openapi/x", "names nothing; there is no 'x'"),
    ("#/components/schemas/List/items/7", "names nothing; there is no '7'"),
    ("https://example.com/flight.json", "leads out of this document"),
    ("flight.json#/a", "leads out of this document"),
]


@pytest.mark.parametrize("place", ["response", "example", "property"])
@pytest.mark.parametrize(("reference", "reason"), BROKEN)
def test_a_reference_that_names_nothing_is_named(place: str, reference: str, reason: str) -> None:
    broken = {"$ref": reference}
    content: Json = {"application/json": {"schema": broken}}
    if place == "example":
        content = {"application/json": {"examples": {"one": broken}}}
    if place == "property":
        content = {"application/json": {"schema": {"properties": {"default": broken}}}}
    spec = small(responses={"200": {"description": "", "content": content}})
    spec["components"] = {"schemas": {"List": {"type": "array", "items": [{}]}}}
    where = "paths./one.get.responses.200.content.application/json"
    with pytest.raises(BrokenReference, match=re.escape(where)) as caught:
        docs.page(spec)
    assert f"$ref {reference!r} {reason}" in str(caught.value)


def test_a_circle_of_references_is_named() -> None:
    spec = small(parameters=[{"$ref": "#/components/parameters/a"}])
    a, b = ({"$ref": f"#/components/parameters/{name}"} for name in "ba")
    spec["components"] = {"parameters": {"a": a, "b": b}}
    with pytest.raises(BrokenReference, match="leads back to itself"):
        docs.page(spec)


def test_what_is_data_is_no_reference() -> None:
    data = {"$ref": "#/nothing"}
    schema = {"default": data, "examples": [data], "enum": [data], "const": data}
    assert '"$ref": "#/nothing"' in with_schema(schema).words


def test_a_parameter_in_the_path_must_be_described() -> None:
    spec = small()
    spec["paths"]["/blocks/{HEIGHT}"] = spec["paths"].pop("/one")
    with pytest.raises(FlightchainError, match=r"/blocks/\{HEIGHT\} has a parameter"):
        docs.page(spec)


MARKED: list[tuple[str, str]] = [
    ("one\n\n two \n \nthree", "<p>one</p>\n<p>two</p>\n<p>three</p>"),
    ("one\ntwo", "<p>one\ntwo</p>"),
    ("a `b < c` d", "<p>a <code>b &lt; c</code> d</p>"),
    ("see [`x` & y](#a-b)", '<p>see <a href="#a-b"><code>x</code> &amp; y</a></p>'),
    ("[out](https://example.com) [in](/tip)", "<p>[out](https://example.com) [in](/tip)</p>"),
    ("**not** *this* ` # - 1.", "<p>**not** *this* ` # - 1.</p>"),
    ("", ""),
    ("  \n\n ", ""),
]


@pytest.mark.parametrize(("text", "html"), MARKED)
def test_three_things_of_markdown_are_known(text: str, html: str) -> None:
    assert prose(text) == html
