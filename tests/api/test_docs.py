"""The page of the OpenAPI description: whatever the document says is on it."""

from collections.abc import Iterator
from typing import Any

import pytest

from backend.api import docs
from tests.api.openapi_sample import METHODS, STRUCTURE, sample, small
from tests.api.reading_html import Page, row


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(docs.page(sample()))


def marked(part: Any, marks: list[str], key: str = "") -> Any:
    """`part` with a word or number of its own in every place that says something."""
    if key in STRUCTURE or isinstance(part, bool) or part is None:
        return part
    if isinstance(part, dict):
        return {name: marked(value, marks, name) for name, value in part.items()}
    if isinstance(part, list):
        return [marked(value, marks) for value in part]
    number = 1_000_000 + len(marks)
    marks.append(f"mark{number}x" if isinstance(part, str) else str(number))
    return marks[-1] if isinstance(part, str) else number


def test_whatever_the_document_says_is_on_the_page() -> None:
    marks: list[str] = []
    spec = marked(sample(), marks)
    assert len(marks) > 250
    words = Page(docs.page(spec)).words
    assert [mark for mark in marks if mark not in words] == []


def names_in(part: Any, key: str = "") -> Iterator[str]:
    """What is named in a document: paths, members, headers, media types, components."""
    if isinstance(part, list):
        for value in part:
            yield from names_in(value)
    elif isinstance(part, dict):
        if key in {"properties", "paths", "headers", "content", "schemas", "securitySchemes"}:
            yield from part
        if "in" in part and "name" in part:
            yield part["name"]
        for name, value in part.items():
            yield from names_in(value, name)


def test_every_name_is_on_the_page(page: Page) -> None:
    names = set(names_in(sample()))
    assert {"/blocks/{HEIGHT}", "ARR_DELAY", "ETag", "text/csv", "Day", "bearer", "X-Key"} <= names
    assert {name for name in names if name not in page.words} == set()


def test_the_contents_lead_to_every_operation_by_tag(page: Page) -> None:
    (nav,) = page.all("nav")
    groups = [one.all("a") for one in nav.all("li") if one.all("ul")]
    told = {links[0].words: [link.words for link in links[1:]] for links in groups}
    assert told["questions"][:2] == ["GET /filter_transactions", "GET /average_delays"]
    assert told["flights"][0] == "POST /transactions"
    assert told["Other"] == ["GET /health/live"]
    assert told["Shared responses"][0] == "BadParameter"
    assert "Transaction" in told["Schemas"]
    operations = {(p, m) for p, item in sample()["paths"].items() for m in item if m in METHODS}
    listed = {tuple(reversed(each.split())) for links in told.values() for each in links}
    assert {(path, method.upper()) for path, method in operations} <= listed


def test_every_operation_has_its_own_place(page: Page) -> None:
    operation = page.by_id("average_delays")
    heading, *below = operation.all("h3", "h4")
    assert heading.words == "GET /average_delays #"
    assert heading.all("a")[0].get("href") == "#average_delays"
    assert [one.words for one in below] == ["Parameters", "Responses", "Try it"]
    assert page.by_id("delete-transactions-TRANSACTION-ID").words.count("Deprecated.") == 1


def test_a_parameter_is_told_with_its_limits(page: Page) -> None:
    questions, posting = page.by_id("average_delays"), page.by_id("add_transaction")
    assert row(questions, "OP_CARRIER_AIRLINE_ID") == [
        "OP_CARRIER_AIRLINE_ID query, required",
        "integer 1 to 99999",
        "DOT number of the carrier.",
        "20366",
    ]
    assert row(questions, "FINAL_DATE")[1:] == [
        "string format date",
        "Last day, itself included.",
        "2013-07-31 a month, 2013-12-31",
    ]
    assert row(questions, "engine")[:2] == [
        "engine query, optional",
        "string one of index, scan; default index",
    ]
    assert row(posting, "Idempotency-Key")[:2] == [
        "Idempotency-Key header, optional",
        "string 1 to 255 characters",
    ]
    path = row(page.by_id("transaction"), "TRANSACTION_ID")
    assert path[0] == "TRANSACTION_ID path, required"
    assert path[3] == "0, 336775"


def test_a_response_is_told_with_its_bodies_and_headers(page: Page) -> None:
    operation = page.by_id("filter_transactions")
    status, meaning, body, headers = row(operation, "200")
    assert (status, meaning) == ("200 OK", "The legs.")
    assert body == "application/json Flights text/csv string"
    assert headers.startswith("ETag Cache-Control X-Flightchain-As-Of string The block")
    headers = row(page.by_id("tip"), "200")[3]
    assert headers == "ETag not always Cache-Control not always X-Request-ID"
    assert row(operation, "400")[1].endswith("names it. more")
    more = next(one for one in operation.all("a") if one.words == "more")
    assert more.get("href") == "#response-BadParameter"
    heads = page.by_id("transaction").all("table")[1].all("th")[4:]
    assert [one.words.split()[0] for one in heads] == ["200", "400", "404", "500", "503"]
    assert "How to send a token." in page.by_id("response-NotAllowed").words
    header = row(page.by_id("headers"), "Retry-After")
    assert header == ["Retry-After", "integer at least 1", "Seconds.", ""]


def test_examples_are_those_given_and_else_made_of_the_schema(page: Page) -> None:
    found = page.by_id("filter_transactions").all("details")
    assert [one.all("summary")[0].words for one in found] == [
        "200 application/json One leg: as most flights",
        "200 application/json none",
        "200 text/csv",
    ]
    assert '"FL_DATE": "2013-01-01"' in found[0].text
    made = page.by_id("average_delays").all("details")[0].words
    assert made.startswith("200 application/json (values made up from the schema)")
    assert '"average_delay": 21.66837090402045' in made
    assert '"histogram": [ { "from": -15, "count": 812 } ]' in made


def test_nothing_is_made_up_for_an_error(page: Page) -> None:
    assert page.by_id("response-NotFound").all("pre") == []


def test_a_header_that_is_shared_is_told_once(page: Page) -> None:
    for name, words in (("ETag", "Names these bytes"), ("X-Request-ID", "Its name in the logs.")):
        assert page.words.count(words) == 1
        assert words in page.by_id(f"header-{name}").words


def test_headers_of_one_name_that_are_not_alike_are_told_where_they_are() -> None:
    header = {"description": "Here.", "schema": {"type": "string"}}
    other = {**header, "description": "There."}
    answers = [{"description": "", "headers": {"X-One": each}} for each in (header, other, header)]
    found = Page(docs.page(small(responses=dict(zip(("200", "201", "202"), answers, strict=True)))))
    assert (found.words.count("Here."), found.words.count("There.")) == (2, 1)


def test_who_may_is_told(page: Page) -> None:
    assert "Needs bearer or key." in page.by_id("add_transaction").words
    assert "Needs bearer, or nothing." in page.by_id("add_batch").words
    assert "Needs" not in page.by_id("tip").words
    assert "256 random bits" in page.by_id("security-bearer").words
    assert "apiKey header X-Key" in page.by_id("security-key").words
