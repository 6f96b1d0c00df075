"""Bodies that are no flight: every field, every way; nothing of it is ever accepted."""

import json
import reprlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.chain.fields import FIELD_NAMES, FIELDS
from tests.api.worlds import GOOD, Json, client_of, good, new_chain, problem, settings_for
from tests.cases import each_of
from tests.chain.test_fields import REFUSED


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    with client_of(new_chain(tmp_path_factory.mktemp("bad"))) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_is_accepted(client: FlaskClient) -> Iterator[None]:
    before = good(client.get("/tip"))["pending"]
    yield
    assert good(client.get("/tip"))["pending"] == before


def send(client: FlaskClient, body: bytes, **more: Any) -> TestResponse:
    return client.post("/transactions", data=body, content_type="application/json", **more)


def post(client: FlaskClient, flight: Json) -> TestResponse:
    return send(client, json.dumps(flight).encode())


def shown(value: object) -> object:
    """A value as a problem repeats it: lists and objects abbreviated."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else reprlib.repr(value)
    return text if len(text) <= 200 else text[:199] + "\u2026"


# --- one field at a time -------------------------------------------------------------------------


def is_json(value: object) -> bool:
    """Returns whether a value can be sent as JSON."""
    try:
        return bool(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):
        return False


CASES = [(field.name, value) for field, value in REFUSED if is_json(value)]


@each_of(("name", "value"), CASES)
def test_a_bad_value_is_named_and_repeated(client: FlaskClient, name: str, value: object) -> None:
    body = problem(post(client, {**GOOD, name: value}), 422, field=name, value=shown(value))
    (error,) = body["errors"]
    assert (error["field"], error["value"]) == (name, shown(value))
    assert error["detail"] in body["detail"]


REQUIRED = [field.name for field in FIELDS if not field.nullable]


@each_of("name", REQUIRED)
def test_what_must_be_given_may_not_be_absent_null_or_blank(client: FlaskClient, name: str) -> None:
    absent = {other: value for other, value in GOOD.items() if other != name}
    for flight in (absent, {**GOOD, name: None}):
        body = problem(post(client, flight), 422, field=name, value=None)
        assert "missing" in body["detail"]
    for blank in ("", "  ", "\u00a0\t"):
        problem(post(client, {**GOOD, name: blank}), 422, field=name, value=blank)


UNKNOWN = ["TRANSACTION_ID", "timestamp", "BLOCK_HEIGHT", "year", "YEAR ", "", "\x00", "\U0001f6eb"]


@each_of("name", UNKNOWN)
@each_of("value", [0, None, "x", [1]])
def test_a_field_that_is_none_is_refused(client: FlaskClient, name: str, value: object) -> None:
    body = problem(post(client, {**GOOD, name: value}), 422, field=name, value=shown(value))
    assert len(body["errors"]) == 1
    is_set = name in {"TRANSACTION_ID", "timestamp"}
    assert ("because the ledger sets it" in body["detail"]) == is_set


# --- fields that contradict each other -----------------------------------------------------------


@each_of(
    ("changed", "fields"),
    [
        ({"CANCELLED": 1}, {"ARR_TIME", "ARR_DELAY", "AIR_TIME"}),
        ({"CANCELLED": "1.00", "ARR_TIME": "", "ARR_DELAY": ""}, {"AIR_TIME"}),
        ({"FL_DATE": "2009-01-03"}, {"YEAR", "DAY_OF_WEEK"}),
    ],
)
def test_every_contradiction_is_listed(
    client: FlaskClient, changed: Json, fields: set[str]
) -> None:
    body = problem(post(client, {**GOOD, **changed}), 422)
    assert {error["field"] for error in body["errors"]} == fields


def test_all_that_is_wrong_is_listed_unknown_fields_first(client: FlaskClient) -> None:
    wrong = {"YEAR": 1, "ORIGIN": "x", "DEP_TIME": "2500", "CANCELLED": [], "WHO": "me"}
    body = problem(post(client, {**GOOD, **wrong}), 422, field="WHO", value="me")
    listed = [(error["field"], error["value"]) for error in body["errors"]]
    names = ["WHO", "YEAR", "ORIGIN", "DEP_TIME", "CANCELLED"]
    assert listed == [(name, shown(wrong[name])) for name in names]
    assert all(set(error) == {"field", "value", "detail"} for error in body["errors"])


def test_an_empty_object_lacks_everything_that_must_be_given(client: FlaskClient) -> None:
    body = problem(send(client, b"{}"), 422)
    assert [error["field"] for error in body["errors"]] == REQUIRED


def test_hundreds_of_unknown_fields_are_still_one_short_answer(client: FlaskClient) -> None:
    many = json.dumps({f"x{number}": number for number in range(3000)}).encode()
    response = send(client, many)
    body = problem(response, 422, field="x0", value=0)
    assert len(body["detail"]) < 1000
    assert len(response.get_data()) < 10 * len(many)


def test_the_name_of_an_unknown_field_is_cut_as_values_are(client: FlaskClient) -> None:
    response = post(client, {**GOOD, "x" * 50_000: 1})
    assert len(problem(response, 422)["field"]) <= 200


# --- bodies that are no object, or no JSON -------------------------------------------------------


NO_OBJECTS: list[object] = [None, True, 5, 1.5, "text", [], [1], [GOOD], [[]], list(range(1000))]


@each_of("value", NO_OBJECTS)
def test_json_that_is_no_object(client: FlaskClient, value: object) -> None:
    body = problem(send(client, json.dumps(value).encode()), 422, field="body", value=shown(value))
    assert "object" in body["detail"]


GOOD_TEXT = json.dumps(GOOD)
NO_JSON = {
    "nothing but blanks": b"  \n ",
    "words": b"flight 335",
    "cut short": GOOD_TEXT[:-1].encode(),
    "two of them": (GOOD_TEXT * 2).encode(),
    "something behind it": (GOOD_TEXT + "x").encode(),
    "a comma too many": GOOD_TEXT.replace("}", ",}").encode(),
    "single quotes": repr(GOOD).encode(),
    "NaN": b'{"YEAR":NaN}',
    "infinity": b'{"YEAR":-Infinity}',
    "1e400": b'{"YEAR":1e400}',
    "-1e400": b'{"YEAR":-1e400}',
    "a number of 5000 digits": b'{"YEAR":' + b"9" * 5000 + b"}",
    "a leading zero": b'{"YEAR":007}',
    "hexadecimal": b'{"YEAR":0x7d8}',
    "a lone surrogate": b'{"ORIGIN_CITY_NAME":"\\ud800"}',
    "a low surrogate first": b'{"ORIGIN_CITY_NAME":"\\udc00\\ud800"}',
    "a lone surrogate as a name": b'{"\\udfff":1}',
    "a bad escape": b'{"YEAR":"\\x"}',
    "a raw control character": b'{"YEAR":"\x01"}',
    "UTF-16": GOOD_TEXT.encode("utf-16"),
    "NUL": b"\x00",
    "NUL behind it": GOOD_TEXT.encode() + b"\x00",
    "a number as a name": b'{1:"x"}',
    "a comment": b"/* */" + GOOD_TEXT.encode(),
    "a form": b"YEAR=2008&DAY_OF_WEEK=4",
    "CSV": ",".join(FIELD_NAMES).encode(),
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "60,000 brackets": b"[" * 60_000,
    "30,000 brackets that close": b"[" * 30_000 + b"]" * 30_000,
    "Latin-1": GOOD_TEXT.replace("Tampa", "T\u00e4mpa").encode("latin-1"),
    "Latin-1 in a name": b'{"\xe4":1}',
    "a surrogate in UTF-8": b'{"ORIGIN_CITY_NAME":"\xed\xa0\x80"}',
    "an overlong form": b'{"ORIGIN_CITY_NAME":"\xc0\xaf"}',
}


@each_of("body", NO_JSON.values())
def test_a_body_that_is_no_json(client: FlaskClient, body: bytes) -> None:
    refusal = problem(send(client, body), 400, field="body")
    assert "is not JSON" in refusal["detail"]
    assert len(refusal["detail"]) < 500
    assert body.decode(errors="replace").startswith(refusal["value"])


def test_no_depth_of_nesting_is_an_internal_error(client: FlaskClient) -> None:
    bodies = ["[{}]".format, '{{"YEAR":{}}}'.format, '{{"nonsense":{}}}'.format]
    for depth in (*range(880, 1010), 5_000, 12_000):  # Python 3.13 takes some thousands
        nested = "[" * depth + "]" * depth
        for body in bodies:
            response = send(client, body(nested).encode())
            assert response.status_code in {400, 422}, (depth, body(nested)[:20])


def test_a_name_given_twice_in_one_object_is_refused(client: FlaskClient) -> None:
    whole = GOOD_TEXT.replace("}", ', "YEAR": 2008}')  # twice the same
    for body, name, value in (
        (whole, "YEAR", 2008),
        ('{"YEAR":2008,"YEAR":2009}', "YEAR", 2009),
        ('{"YEAR":2008,"\\u0059EAR":2009}', "YEAR", 2009),
        ('{"YEAR" :2008,"YEAR":2009}', "YEAR", 2009),
        ('{"nonsense":[{"a":1,"b":2,"a":null}]}', "a", None),
        ('{"":1,"":2}', "", 2),
    ):
        refusal = problem(send(client, body.encode()), 400, field=name, value=value)
        assert "twice" in refusal["detail"]


# --- headers -------------------------------------------------------------------------------------

NO_TYPES = ["text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data"]
NO_TYPES += ["application/jsonx", "application/problem+json", "text/csv", "*/*", "json", "\u00e4"]


@each_of("content_type", [*NO_TYPES, ""])
def test_another_content_type_is_refused(client: FlaskClient, content_type: str) -> None:
    response = client.post("/transactions", data=GOOD_TEXT, content_type=content_type)
    body = problem(response, 415, field="body")
    assert "application/json" in body["detail"]
    assert body["value"] in content_type


def test_a_body_without_a_length_is_refused(client: FlaskClient) -> None:
    chunked = {
        "HTTP_TRANSFER_ENCODING": "chunked",
        "CONTENT_LENGTH": "",
        "wsgi.input_terminated": 1,
    }
    response = send(client, GOOD_TEXT.encode(), environ_overrides=chunked)
    problem(response, 411, field="body", value=None)
    problem(send(client, b""), 411, field="body", value=None)


@each_of("length", ["abc", "-1", "1.5", "\u0663", " "])
def test_a_length_that_is_none_is_refused(client: FlaskClient, length: str) -> None:
    response = send(client, GOOD_TEXT.encode(), environ_overrides={"CONTENT_LENGTH": length})
    problem(response, response.status_code)
    assert response.status_code in {400, 411}


def test_a_body_may_have_64_kibibytes_and_not_one_more(client: FlaskClient) -> None:
    most = 64 * 1024
    padded = b'{"YEAR":1}'.ljust(most)
    assert problem(send(client, padded), 422)["field"] == "YEAR"
    problem(send(client, padded + b" "), 413, field="body")
    problem(send(client, b"[" * 100_000), 413)
    problem(send(client, b"{}", environ_overrides={"CONTENT_LENGTH": str(10**18)}), 413)


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    with client_of(settings_for(tmp_path / "none")) as client:
        problem(post(client, {**GOOD, "YEAR": 1}), 422)
    assert not (tmp_path / "none").exists()
