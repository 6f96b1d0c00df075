"""Paths, parameters and methods that nobody should send: one shape of error for all of them."""

from typing import Any
from urllib.parse import quote, urlencode

from flask.testing import FlaskClient

from tests.api.test_bad_flights import shown
from tests.api.worlds import World, problem
from tests.cases import each_of

DAYS = {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-01-31"}
QUESTIONS: dict[str, dict[str, str]] = {
    "/filter_transactions": {"OP_CARRIER_FL_NUM": "335", "FL_DATE": "2015-01-01"},
    "/average_delays": {"OP_CARRIER_AIRLINE_ID": "19393", **DAYS},
    "/flight_counter": {"ORIGIN_CITY_NAME": "Chicago, IL", "DEST_CITY_NAME": "Miami, FL", **DAYS},
}
COMMON = {"engine": "index", "as_of": "1"}


def query(route: str, **changed: str) -> str:
    return f"{route}?{urlencode(QUESTIONS[route] | changed)}"


@each_of(
    ("path", "field"),
    [
        *((f"/filter_transactions{empty}", "OP_CARRIER_FL_NUM") for empty in ("", "?", "?&&=&")),
        *((f"/{name}?ORIGIN=JFK", "INITIAL_DATE") for name in ("average_delays", "flight_counter")),
        *((path, "INITIAL_DATE") for path in ("/flights", "/flights?FINAL_DATE=2015-01-31")),
        *((f"/suggest?{given}", "field") for given in ("", "q=a", "limit=5")),
    ],
)
def test_what_is_missing_is_named_with_an_example(
    client: FlaskClient, path: str, field: str
) -> None:
    body = problem(client.get(path), 400, field=field, value=None)
    assert f"{field}=" in body["detail"]


@each_of("route", QUESTIONS)
def test_a_parameter_given_twice_is_refused_even_if_both_agree(
    client: FlaskClient, route: str
) -> None:
    for name, text in (QUESTIONS[route] | COMMON).items():
        response = client.get(f"{query(route, **COMMON)}&{urlencode({name: text})}")
        problem(response, 400, field=name, value=text)


UNKNOWN = [
    *("nonsense", "op_carrier_fl_num", "OP_CARRIER_FL_NUM ", "fl_date[]", "", "\U0001f6eb"),
    "\x00",
]
STRICT_ROUTES = [*QUESTIONS, "/suggest", "/blocks", "/blocks/1", "/tip", "/transactions/1"]


@each_of("name", UNKNOWN)
def test_an_unknown_parameter_is_refused(client: FlaskClient, name: str) -> None:
    problem(client.get(f"/blocks?{urlencode({name: '1'})}"), 400, field=name, value="1")


NOT_UTF_8 = ["%ff", "%C3", "%ED%A0%80", "%F5%80%80%80", "a%80b", "%c0%af"]


@each_of("route", STRICT_ROUTES)
@each_of("text", NOT_UTF_8)
def test_escapes_that_are_not_utf_8_are_refused(client: FlaskClient, route: str, text: str) -> None:
    good = urlencode(QUESTIONS.get(route, {}))
    for part in (f"limit={text}", f"{text}=1"):
        body = problem(client.get(f"{route}?{good}&{part}"), 400, value=text)
        assert "UTF-8" in body["detail"]
        assert body["field"]


@each_of("text", ["%", "%4", "%zz", "%%41"])
def test_a_percent_sign_that_escapes_nothing_stands_for_itself(
    client: FlaskClient, text: str
) -> None:
    response = client.get(f"/blocks?limit={text}")
    problem(response, 400, field="limit", value=text.replace("%41", "A"))


# --- numbers in paths, pages ---------------------------------------------------------------------

NO_NUMBERS = [
    *("-1", "1.0", "+1", "1e1", "0x1", "abc", " 1", "1 ", "9" * 16, "9" * 3000, "tip", "null"),
    *("\uff11", "\u0663", "\u00b2", "\x00", "1\x00", "\U0001f6eb", "'", "1;2", "1&2", "..", "%2e"),
]


@each_of(("route", "field"), [("/blocks", "HEIGHT"), ("/transactions", "TRANSACTION_ID")])
@each_of("text", NO_NUMBERS)
def test_a_path_that_should_end_in_a_number(
    client: FlaskClient, route: str, field: str, text: str
) -> None:
    response = client.get(f"{route}/{quote(text, safe='')}")
    problem(response, 400, field=field, value=shown(text))


@each_of("text", ["%ff", "%C3", "%ED%A0%80"])
def test_a_path_that_is_not_utf_8(client: FlaskClient, text: str) -> None:
    problem(client.get(f"/blocks/{text}"), 400, field="HEIGHT")
    assert "/docs" in problem(client.get(f"/{text}"), 404)["detail"]


NO_DIGITS = ("x", "1x", "-1", "1.0", "\u0663", "\u00b2", "1 2", "+1", "1" * 101)
NO_FIRST_DAYS = ("2015-02-30", "2016-01-01", "")
NOT_OF_EXPORTS = {
    "format": "xml",
    "engine": "scan",
    "as_of": "-1",
    "OP_CARRIER_AIRLINE_ID": "x",
    "ORIGIN_CITY_NAME": " ",
}


@each_of(
    ("path", "name", "text"),
    [
        *((query(route), "as_of", "9" * 5000) for route in QUESTIONS),
        *((query(route), "format", text) for route in QUESTIONS for text in ("xml", "json", "")),
        *(("/blocks", name, text) for name in ("limit", "before") for text in ("", "x" * 300)),
        *(("/suggest?q=a", "field", text) for text in ("", "City", "cities", "\x00", "x" * 3000)),
        *(("/suggest?field=city", "q", text) for text in ("Tam\npa", "x" * 101)),
        *(("/suggest?field=flight_number", "q", text) for text in NO_DIGITS),
        *(("/blocks", "hash", text) for text in ("", "0" * 7, "0" * 65, "g" * 64, "0x" + "0" * 62)),
        *(("/flights?FINAL_DATE=2015-12-31", "INITIAL_DATE", text) for text in NO_FIRST_DAYS),
        *((f"/flights?{urlencode(DAYS)}", name, text) for name, text in NOT_OF_EXPORTS.items()),
        ("/departures?FL_DATE=2015-01-01", "hour", "24"),
    ],
)
def test_a_value_that_cannot_be_is_shown(
    client: FlaskClient, path: str, name: str, text: str
) -> None:
    """`test_specification` tries each number beyond its bounds."""
    response = client.get(f"{path}{'&' if '?' in path else '?'}{urlencode({name: text})}")
    problem(response, 400, field=name, value=shown(text))


@each_of("beyond", [0, 1, 10**6, 10**15 - 5000])
def test_what_is_not_there_is_not_found_and_named(
    client: FlaskClient, world: World, beyond: int
) -> None:
    height, number = world.tip + 1 + beyond, len(world.transactions) + beyond
    assert f"block {height}" in problem(client.get(f"/blocks/{height}"), 404)["detail"]
    body = problem(client.get(f"/transactions/{number}"), 404)
    assert f"transaction {number}" in body["detail"]


NO_PATHS = [
    *("/nothing", "/blocks/", "/blocks/1/", "/blocks/1/2", "/blocks/1%2F2", "/blocks.json"),
    *("/Blocks", "/tip/", "/transactions/", "/transactions/1/2", "/health", "/health/"),
    *("/health/live/", "/filter_transactions/", "/%00", "/" + "x" * 3000, "/\U0001f6eb", "/../tip"),
    *("/favicon.ico", "/.env", "/tip;x", "/tip%20", "/*", "/static/x"),
    *("/blocks//1", "/transactions//1", "/health//live"),
]


@each_of("path", NO_PATHS)
def test_a_path_that_leads_nowhere(client: FlaskClient, path: str) -> None:
    problem(client.get(path), 404)


def test_utf_8_that_is_not_escaped_is_read_as_utf_8(client: FlaskClient) -> None:
    given = "DEST_CITY_NAME=x&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02"
    raw = f"ORIGIN_CITY_NAME=S\u00e3o&{given}".encode().decode("latin-1")
    answer = client.get("/flight_counter", environ_overrides={"QUERY_STRING": raw})
    assert answer.get_json()["query"]["ORIGIN_CITY_NAME"] == "S\u00e3o"


# --- methods -------------------------------------------------------------------------------------

READ_ONLY = {"GET", "HEAD", "OPTIONS"}
PATHS = (*STRICT_ROUTES, "/health/live", "/health/ready")
ALLOWED = {
    **dict.fromkeys(PATHS, READ_ONLY),
    "/transactions": {*READ_ONLY, "POST"},
    "/transactions/batch": {"POST", "OPTIONS"},
}
METHODS = ["OPTIONS", "GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "NONSENSE"]


@each_of(("path", "allowed"), ALLOWED.items())
@each_of("method", METHODS)
def test_options_and_a_wrong_method_are_told_the_right_ones(
    client: FlaskClient, path: str, allowed: set[str], method: str
) -> None:
    if method not in allowed or method == "OPTIONS":
        response = client.open(path, method=method, data=b"{}")
        assert set(response.headers["Allow"].split(", ")) == allowed
        if method == "OPTIONS":
            assert (response.status_code, response.get_data()) == (200, b"")
        else:
            problem(response, 405)


def test_parameters_of_posting_are_checked_before_the_body(client: FlaskClient) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("mode=SYNC", {"field": "mode", "value": "SYNC"}),
        ("mode=sync&mode=sync", {"field": "mode", "value": "sync"}),
        ("node=sync", {"field": "node", "value": "sync"}),
    ]
    for parameters, members in cases:
        problem(client.post(f"/transactions?{parameters}", data=b"\xff"), 400, **members)
