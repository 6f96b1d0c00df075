"""What is found without Flask is what Flask would have found."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient

from backend.api import direct
from backend.api.conditions import Environ
from backend.chain.fields import FIELD_NAMES
from backend.errors import NotFound
from tests.api.worlds import GOOD, World, client_of, good, problem, settings_for, world_in

MARKED = {
    "/filter_transactions",
    "/average_delays",
    "/flight_counter",
    "/transactions/<id:transaction_id>",
    "/blocks/<height>",
    "/transactions",
}
NUMBER, DAY = FIELD_NAMES.index("OP_CARRIER_FL_NUM"), FIELD_NAMES.index("FL_DATE")
IN_2015 = "INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-31"
CITIES = "ORIGIN_CITY_NAME=Chicago%2C+IL&DEST_CITY_NAME=New+York,%20NY"
PATHS = [
    "/transactions/0", "/transactions/1557", "/transactions/007", "/transactions/%31",
    "/transactions/batch", "/transactions/-1", "/transactions/x", "/transactions/", "/transactions",
    "/transactions/1/", "/transactions/1/2", "/transactions/9%2F1", "/transactions/1?",
    "/transactions/1?&", "/transactions/1?x=1", "/transactions/99999", "/transactions/" + "9" * 16,
    "//transactions/1", "/blocks/3", "/blocks/3?limit=2", "/blocks/3?limit=2&offset=1",
    "/blocks/3?limit=x", "/blocks/3?x", "/blocks/3?limit=1&limit=2", "/blocks/0", "/blocks/99",
    "/blocks/x", "/blocks/", "/blocks", "/blocks/3/", "/blocks/%C3%A9",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01&engine=scan",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01&engine=index",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01&format=csv",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-02-30", "/filter_transactions",
    "/filter_transactions/", "/filter_transactions?FL_DATE=%ff&OP_CARRIER_FL_NUM=1",
    f"/average_delays?OP_CARRIER_AIRLINE_ID=19393&{IN_2015}", "/average_delays?engine=index",
    f"/average_delays?OP_CARRIER_AIRLINE_ID=19393&{IN_2015}&group_by=day",
    f"/average_delays?OP_CARRIER_AIRLINE_ID=19393&{IN_2015}&as_of=4",
    f"/average_delays?OP_CARRIER_AIRLINE_ID=19393&{IN_2015}&as_of=99",
    f"/flight_counter?{CITIES}&{IN_2015}", f"/flight_counter/x?{CITIES}&{IN_2015}", "/health/live",
    "/tip", "/", "/nothing/1",
]  # fmt: skip
OF_THE_MOMENT = {"X-Request-ID", "Server-Timing", "Date"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_in(tmp_path_factory.mktemp("direct") / "chain")


@pytest.fixture(scope="module")
def both(world: World) -> Iterator[tuple[FlaskClient, FlaskClient]]:
    """A service as it is, and one in which Flask finds everything."""
    with ExitStack() as stack:
        usual = stack.enter_context(client_of(world.settings))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(direct, "install", lambda app: None)
            by_flask = stack.enter_context(client_of(world.settings))
        yield usual, by_flask


def seen(
    client: FlaskClient,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    data: bytes | None = None,
) -> tuple[str, list[tuple[str, str]], bytes]:
    response = client.open(path, method=method, headers=headers, data=data)
    kept = [(name, text) for name, text in response.headers if name not in OF_THE_MOMENT]
    return response.status, kept, response.get_data()


@pytest.mark.parametrize("path", PATHS)
def test_nobody_can_tell_who_found_it(both: tuple[FlaskClient, FlaskClient], path: str) -> None:
    for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE"):
        found, expected = (seen(client, method, path) for client in both)
        assert found == expected
    for accepted in ("", "gzip", "zstd, gzip;q=0.5"):
        headers = {"Accept-Encoding": accepted}
        found, expected = (seen(client, "GET", path, headers) for client in both)
        assert found == expected
        etag = dict(expected[1]).get("ETag", '"none"')
        for known in (etag, f'W/{etag}, "x"', "*", '"x"', ""):
            for method in ("GET", "HEAD"):
                headers["If-None-Match"] = known
                ours, theirs = (seen(client, method, path, headers) for client in both)
                assert ours == theirs


POSTS: list[tuple[str, str | None, bytes]] = [
    ("", "application/json", b"{}"), ("", "application/json", b""), ("", "application/json", b"x"),
    ("", "application/json", b"[]"), ("", "application/json", b'{"A": 1, "A": 2}'),
    ("", "application/json", b" " * 70_000), ("", "text/plain", b"{}"), ("", None, b"{}"),
    ("", "Application/JSON; charset=utf-8", b"{}"), ("?mode=soon", "application/json", b"{}"),
    ("?mode=sync&mode=sync", "application/json", b"{}"), ("?x=1", "application/json", b"{}"),
    ("/", "application/json", b"{}"), ("/x", "application/json", b"{}"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "kind", "body"), POSTS)
def test_nobody_can_tell_who_refused_it(
    both: tuple[FlaskClient, FlaskClient], query: str, kind: str | None, body: bytes
) -> None:
    for more in ({}, {"Idempotency-Key": "k"}, {"Idempotency-Key": "\x01"}):
        headers = {"Content-Type": kind, **more} if kind else dict(more)
        found, expected = (
            seen(client, "POST", f"/transactions{query}", headers, body) for client in both
        )
        assert found == expected
        assert found[0][0] == "4"


def test_a_body_that_breaks_off_is_a_problem_whoever_reads_it(
    both: tuple[FlaskClient, FlaskClient],
) -> None:
    for client in both:
        response = client.post(
            "/transactions",
            data=b'{"YE',
            content_type="application/json",
            environ_overrides={"CONTENT_LENGTH": "100"},
        )
        problem(response, 400)


def test_nobody_can_tell_who_accepted_it(both: tuple[FlaskClient, FlaskClient]) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "the same"}
    data = json.dumps(GOOD).encode()
    found, expected = (seen(client, "POST", "/transactions", headers, data) for client in both)
    assert found == expected  # the second is told of the first
    assert found[0] == "202 ACCEPTED"


def test_what_has_been_begun_is_not_begun_again() -> None:
    begun: list[str] = []

    def act() -> Response:
        begun.append("act")
        raise NotFound("half way")

    def view() -> str:
        begun.append("view")
        return "from the view"

    app = Flask(__name__)
    app.post("/things")(direct.direct(lambda environ, rest: act, "POST")(view))
    app.register_error_handler(NotFound, lambda error: (f"told: {error}", 404))
    direct.install(app)
    response = app.test_client().post("/things")
    assert (response.status_code, response.text, begun) == (404, "told: half way", ["act"])
    assert app.test_client().get("/things").status_code == 405


def test_what_is_marked_is_found_without_flask(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client_of(world.settings) as client:
        rules = {
            rule.rule
            for rule in client.application.url_map.iter_rules()
            if direct._MARK in vars(client.application.view_functions[rule.endpoint])
        }
        assert rules == MARKED
        found = good(client.get("/blocks/3"))

        def dispatch(*_: object) -> Response:
            raise AssertionError("Flask was asked")

        monkeypatch.setattr(Flask, "full_dispatch_request", dispatch)
        assert good(client.get("/blocks/3")) == found
        assert good(client.get("/transactions/5"))["block"]["height"] == 1
        assert good(client.post("/transactions", json=GOOD), 202)["durable"]


def test_what_cannot_be_found_directly_is_left_to_the_view() -> None:
    asked: list[str] = []

    def find(environ: Environ, rest: str) -> Response | None:
        asked.append(rest)
        if rest == "gone":
            raise NotFound(rest)
        if rest == "disk":
            raise OSError(rest)
        return Response("found") if rest == "here" else None

    app = Flask(__name__)

    @app.route("/things/<name>", methods=["GET", "POST"])
    @direct.direct(find)
    def things(name: str) -> str:
        return f"the view has {name}"

    direct.install(app)
    client = app.test_client()
    assert client.get("/things/here").text == "found"
    for name in ("gone", "disk", "other"):
        assert client.get(f"/things/{name}").text == f"the view has {name}"
    assert client.post("/things/here").text == "the view has here"
    assert client.get("/things/here/there").status_code == 404
    assert asked == ["here", "gone", "disk", "other"]


def test_a_service_without_a_chain_says_so(tmp_path: Path) -> None:
    with client_of(settings_for(tmp_path)) as client:
        for path in ("/blocks/3", "/transactions/5", f"/flight_counter?{CITIES}&{IN_2015}"):
            assert client.get(path).status_code in {404, 503}
