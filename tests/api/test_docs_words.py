"""The words of the page: schemas, references, and what little of Markdown it knows."""

from typing import Any

import pytest

from backend.api import docs
from backend.api.docs.words import example_of, limits, phrase, type_of
from backend.errors import FlightchainError
from tests.api.openapi_small import Json, small
from tests.api.reading_html import Page

FLIGHT = {"$ref": "#/components/schemas/Flight"}

IN_WORDS: list[tuple[Json, str]] = [
    ({"type": "integer"}, "integer"),
    ({"type": ["integer", "null"]}, "integer or null"),
    ({"type": ["string", "integer", "null"]}, "string or integer or null"),
    ({"anyOf": [FLIGHT, {"type": "null"}]}, "Flight or null"),
    ({"type": "array", "items": FLIGHT}, "array of Flight"),
    ({"type": "array", "items": {"type": ["integer", "null"]}}, "array of (integer or null)"),
    ({"type": "array", "items": {"anyOf": [FLIGHT, FLIGHT]}}, "array of (Flight or Flight)"),
    ({"type": "object", "additionalProperties": False}, "object no other members"),
    ({"type": "string", "enum": ["a", "b"]}, "string one of a, b"),
    ({"type": ["integer", "null"], "enum": [1, None]}, "integer or null one of 1, null"),
    ({"type": "string", "enum": ["a"]}, "string only a"),
    ({"type": "integer", "minimum": -3, "maximum": -3}, "integer exactly -3"),
    ({"type": "integer", "minimum": 0}, "integer at least 0"),
    ({"type": "number", "maximum": 1}, "number at most 1"),
    ({"type": "string", "minLength": 1, "maxLength": 9}, "string 1 to 9 characters"),
    ({"type": "string", "pattern": "^<a>$"}, "string pattern ^<a>$"),
    ({"type": "string", "default": ""}, 'string default ""'),
    ({"type": "integer", "default": 0}, "integer default 0"),
    ({}, "any value"),
]


def with_schema(schema: Json) -> str:
    """What the page says in its section on a component with a member of this schema."""
    spec = small()
    one = {"type": "object", "required": [], "properties": {"member": schema}}
    flight = {"type": "object", "required": [], "properties": {}}
    spec["components"]["schemas"] = {"One": one, "Flight": flight}
    return Page(docs.page(spec)).by_id("schema-One").all("td")[0].words


@pytest.mark.parametrize(("schema", "words"), IN_WORDS)
def test_a_schema_is_told_in_words(schema: Json, words: str) -> None:
    assert with_schema(schema) == words


@pytest.mark.parametrize(
    "schema", [{"type": "integer", "multipleOf": 5}, {"oneOf": []}, {"not": {}}, {"readOnly": True}]
)
def test_what_the_page_has_no_words_for_is_refused(schema: Json) -> None:
    with pytest.raises(FlightchainError, match=f"no words for.*{list(schema)[-1]}"):
        with_schema(schema)


def test_a_type_leads_to_its_schema() -> None:
    assert type_of(FLIGHT) == '<a href="#schema-Flight">Flight</a>'


def test_markup_in_a_schema_is_text() -> None:
    assert type_of({"type": "<b>"}) == "&lt;b&gt;"
    assert [*limits({"enum": ["<b>"], "pattern": "<i>"})] == [
        "pattern <code>&lt;i&gt;</code>",
        "only <code>&lt;b&gt;</code>",
    ]


EXAMPLES: list[tuple[Json, Any]] = [
    ({"type": "integer", "examples": [7, 8], "default": 9}, 7),
    ({"type": "integer", "default": 9, "minimum": 1}, 9),
    ({"type": "string", "enum": ["a", "b"]}, "a"),
    ({"type": "integer", "minimum": 5}, 5),
    ({"type": "string", "format": "date"}, "2013-01-01"),
    ({"type": ["string", "null"]}, "text"),
    ({"type": "array", "items": {"type": "boolean"}}, [True]),
    ({"anyOf": [FLIGHT, {"type": "null"}]}, {"a": 1, "b": [1.5]}),
    ({}, None),
]


@pytest.mark.parametrize(("schema", "example"), EXAMPLES)
def test_what_is_made_up_fits_and_has_all_members(schema: Json, example: Any) -> None:
    members = {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "number"}}}
    assert example_of(schema, {"Flight": {"type": "object", "properties": members}}) == example


# --- what is missing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        {"parameters": [{"$ref": "#/components/parameters/x"}]},
        {"responses": {"200": {"$ref": "#/components/responses/x"}}},
    ],
)
def test_a_reference_that_names_nothing_is_an_error(broken: Json) -> None:
    with pytest.raises(KeyError, match="x"):
        docs.page(small(**broken))


def test_a_parameter_in_the_path_must_be_described() -> None:
    spec = small()
    spec["paths"]["/blocks/{HEIGHT}"] = spec["paths"].pop("/one")
    with pytest.raises(FlightchainError, match=r"/blocks/\{HEIGHT\} has a parameter"):
        docs.page(spec)


MARKED: list[tuple[str, str]] = [
    ("one\ntwo", "one\ntwo"),
    ("a `b < c` d", "a <code>b &lt; c</code> d"),
    ("`a` & `b`", "<code>a</code> &amp; <code>b</code>"),
    ("[out](https://example.com) [in](#tip)", "[out](https://example.com) [in](#tip)"),
    ("**not** *this* ` # - 1.", "**not** *this* ` # - 1."),
    ("", ""),
]


@pytest.mark.parametrize(("text", "html"), MARKED)
def test_of_markdown_code_is_known(text: str, html: str) -> None:
    assert phrase(text) == html
