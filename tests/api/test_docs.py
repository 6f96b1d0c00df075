"""The page of the service's OpenAPI description: whatever the document says is on it."""

from collections.abc import Iterator
from typing import Any

import pytest

from backend.api import docs
from tests.api.openapi_small import STRUCTURE, Json
from tests.api.reading_html import Page, row


@pytest.fixture(scope="module")
def page(described: Json) -> Page:
    return Page(docs.page(described))


def marked(part: Any, marks: dict[object, str], key: str = "") -> Any:
    """`part` with each text and number that says something exchanged for one of its own."""
    if isinstance(part, dict):
        return {name: marked(value, marks, name) for name, value in part.items()}
    if key in STRUCTURE or isinstance(part, bool) or part is None:
        return part
    if isinstance(part, list):
        return [marked(value, marks) for value in part]
    is_text = isinstance(part, str)
    if part not in marks:
        number = 1_000_000 + len(marks)
        marks[part] = f"mark{number}x" if is_text else str(number)
    return marks[part] if is_text else int(marks[part])


def test_whatever_the_document_says_is_on_the_page(described: Json) -> None:
    marks: dict[object, str] = {}
    spec = marked(described, marks)
    assert len(marks) > 200
    words = Page(docs.page(spec)).words
    assert [said for said, mark in marks.items() if mark not in words] == []


def names_in(part: Any, key: str = "") -> Iterator[str]:
    """What is named in a document: paths, members, headers, media types, components."""
    if isinstance(part, list):
        for value in part:
            yield from names_in(value)
    elif isinstance(part, dict):
        if key in {"properties", "paths", "headers", "content", "schemas", "securitySchemes"}:
            yield from part
        if "in" in part and isinstance(part.get("name"), str):
            yield part["name"]
        for name, value in part.items():
            yield from names_in(value, name)


def test_every_name_is_on_the_page(described: Json, page: Page) -> None:
    names = set(names_in(described))
    assert {"/blocks/{HEIGHT}", "ARR_DELAY", "ETag", "text/csv", "Leg", "token"} <= names
    assert {name for name in names if name not in page.words} == set()


def test_the_contents_lead_to_every_operation_by_tag(described: Json, page: Page) -> None:
    (nav,) = page.all("nav")
    groups = [one.all("a") for one in nav.all("li") if one.all("ul")]
    told = {links[0].words: [link.words for link in links[1:]] for links in groups}
    tags = [tag["name"] for tag in described["tags"]]
    assert list(told)[: len(tags)] == tags
    assert told["The three questions"][:2] == ["GET /filter_transactions", "GET /average_delays"]
    assert told["Adding flights"][0] == "POST /transactions"
    assert told["Shared responses"][0] == "BadRequest"
    assert "Transaction" in told["Schemas"]
    assert "Retry-After" in told["Headers"]
    operations = {(p, m.upper()) for p, item in described["paths"].items() for m in item}
    listed = {tuple(reversed(each.split())) for links in told.values() for each in links}
    assert operations <= listed


def test_every_operation_has_its_own_place(page: Page) -> None:
    operation = page.by_id("average_delays")
    heading, *below = operation.all("h3", "h4")
    assert heading.words == "GET /average_delays #"
    assert heading.all("a")[0].get("href") == "#average_delays"
    assert [one.words for one in below] == ["Parameters", "Responses", "Try it"]


def test_a_parameter_is_told_with_its_limits(page: Page) -> None:
    questions, posting = page.by_id("average_delays"), page.by_id("add_transaction")
    name, kind, meaning, example = row(questions, "OP_CARRIER_AIRLINE_ID")
    assert (name, kind) == ("OP_CARRIER_AIRLINE_ID query, optional", "integer 1 to 99999")
    assert meaning.startswith("DOT number of the carrier")
    assert example == "19977"
    assert row(questions, "FINAL_DATE")[1:2] == ["string format date"]
    assert row(questions, "engine")[:2] == [
        "engine query, optional",
        "string one of index, scan; default index",
    ]
    assert row(posting, "Idempotency-Key")[:2] == [
        "Idempotency-Key header, optional",
        "string 1 to 255 characters; pattern ^[ -~]+$",
    ]
    path = row(page.by_id("get_transaction"), "TRANSACTION_ID")
    assert (path[0], path[3]) == ("TRANSACTION_ID path, required", "0")


def test_a_response_is_told_with_its_bodies_and_headers(page: Page) -> None:
    operation = page.by_id("filter_transactions")
    status, meaning, body, headers = row(operation, "200")
    assert status == "200 OK"
    assert meaning.startswith("The legs")
    assert body == "application/json Legs application/x-ndjson string text/csv string"
    assert "ETag X-Emulated-Disk not always" in headers
    assert row(operation, "400")[1].endswith("more")
    more = next(one for one in operation.all("a") if one.words == "more")
    assert more.get("href") == "#response-BadRequest"
    heads = page.by_id("get_transaction").all("table")[1].all("th")[4:]
    assert [one.words.split()[0] for one in heads] == [
        "200",
        "304",
        "400",
        "404",
        "421",
        "500",
        "503",
    ]
    assert "WWW-Authenticate" in page.by_id("response-Unauthorized").words
    header = row(page.by_id("headers"), "Retry-After")
    assert header == ["Retry-After", "integer at least 1", "Seconds to wait.", ""]


def test_examples_are_those_given_and_else_made_of_the_schema(described: Json, page: Page) -> None:
    sent, *answers = page.by_id("add_transaction").all("details")
    assert sent.words.startswith('Request application/json { "YEAR": 2008,')
    assert answers[1].words.startswith("201 application/json (values made up from the schema)")
    made = page.by_id("tip").all("details")[0].words
    members = described["components"]["schemas"]["Tip"]["properties"]
    assert [name for name in members if f'"{name}":' not in made] == []
    assert page.by_id("schema-Flight").all("summary")[0].words == "Example"
    assert "made up" in page.by_id("schema-Leg").all("summary")[0].words


def test_nothing_is_made_up_for_an_error(page: Page) -> None:
    assert page.by_id("response-NotFound").all("pre") == []


def headers_of(described: Json) -> Iterator[tuple[str, Json]]:
    operations = [part for item in described["paths"].values() for part in item.values()]
    responses = [each for part in operations for each in part["responses"].values()]
    for response in (*described["components"]["responses"].values(), *responses):
        yield from response.get("headers", {}).items()


def test_a_header_is_told_once_for_all_answers_that_have_it(described: Json, page: Page) -> None:
    told: dict[str, Json] = {}
    for name, header in headers_of(described):
        said = {**header, "required": None}  # this one is about the answer, and stands there
        assert told.setdefault(name, said) == said
    assert len(told) > 5
    for name, header in told.items():
        words = header["description"].replace("`", "")
        assert words in page.by_id(f"header-{name}").words
        if len(words) > 20:
            assert page.words.count(words) == 1


def test_who_may_is_told(page: Page) -> None:
    assert "Needs token, or nothing." in page.by_id("add_transaction").words
    assert "Needs" not in page.by_id("tip").words
    assert "http bearer" in page.by_id("security-token").words
