"""The front, which finds rows without Flask, answers what Flask under a WSGI server answers."""

import json
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from flask import Response
from werkzeug.test import run_wsgi_app

from backend.api import SERVICE, Service
from backend.api.operation import OPERATION, Operation
from backend.api.routes import Lane, Row
from backend.base.errors import NotFound
from backend.questions.parameters import Given
from backend.service.web_server import front_of
from backend.serving.environs import Environ, environ_of
from tests.api.worlds import GOOD, World, client_of, problem
from tests.cases import each_of
from tests.doors import Seen, asked, environ, scope_of

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
Door = Callable[..., Seen]
OF_THE_MOMENT = {"X-Request-ID", "Server-Timing", "Date"}


@pytest.fixture(scope="module")
def both(world: World) -> Iterator[tuple[Door, Door]]:
    """The front of a service, and its Flask application under a WSGI server."""
    with client_of(world.settings) as client:
        front = front_of(client.application.extensions[SERVICE])

        def by_front(*request: Any) -> Seen:
            return without_moment(asked(front, *request))

        def by_flask(
            method: str,
            path: str,
            headers: dict[str, str] | None = None,
            data: bytes | None = None,
        ) -> Seen:
            given = dict(headers or {})
            if data is not None:
                given["Content-Length"] = str(len(data))
            request = environ_of(scope_of(method, path, given))
            request["wsgi.input"] = BytesIO(data or b"")
            pieces, status, answered = run_wsgi_app(client.application, request)
            return without_moment(Seen(int(status[:3]), list(answered), b"".join(pieces)))

        yield by_front, by_flask
        front.close()


def without_moment(answer: Seen) -> Seen:
    kept = [(name, text) for name, text in answer.headers if name not in OF_THE_MOMENT]
    return answer._replace(headers=kept)


@each_of("path", PATHS)
def test_nobody_can_tell_who_found_it(both: tuple[Door, Door], path: str) -> None:
    for method in ("GET", "HEAD", "POST", "OPTIONS", "DELETE"):
        answer, expected = (door(method, path) for door in both)
        assert answer == expected
    for accepted in ("", "zstd, gzip;q=0.5"):
        headers = {"Accept-Encoding": accepted}
        answer, expected = (door("GET", path, headers) for door in both)
        assert answer == expected
        etag = dict(expected.headers).get("ETag", '"none"')
        for known in (etag, f'W/{etag}, "x"', "*", '"x"', ""):
            headers["If-None-Match"] = known
            ours, theirs = (door("GET", path, headers) for door in both)
            assert ours == theirs


POSTS: list[tuple[str, str | None, bytes]] = [
    ("", "application/json", b"{}"), ("", "application/json", b""), ("", "application/json", b"x"),
    ("", "application/json", b"[]"), ("", "application/json", b'{"A": 1, "A": 2}'),
    ("", "application/json", b" " * 70_000), ("", "text/plain", b"{}"), ("", None, b"{}"),
    ("", "Application/JSON; charset=utf-8", b"{}"), ("?mode=soon", "application/json", b"{}"),
    ("?mode=sync&mode=sync", "application/json", b"{}"), ("?x=1", "application/json", b"{}"),
    ("/", "application/json", b"{}"), ("/x", "application/json", b"{}"),
]  # fmt: skip


@each_of(("query", "kind", "body"), POSTS)
def test_nobody_can_tell_who_refused_it(
    both: tuple[Door, Door], query: str, kind: str | None, body: bytes
) -> None:
    for more in ({}, {"Idempotency-Key": "k"}, {"Idempotency-Key": "\x01"}):
        headers = {"Content-Type": kind, **more} if kind else dict(more)
        answer, expected = (door("POST", f"/transactions{query}", headers, body) for door in both)
        assert answer == expected
        assert 400 <= answer.status < 500


def test_a_body_that_breaks_off_under_a_wsgi_server_is_a_problem(world: World) -> None:
    """The front calls nobody before the whole body is there."""
    with client_of(world.settings) as client:
        response = client.post(
            "/transactions",
            data=b'{"YE',
            content_type="application/json",
            environ_overrides={"CONTENT_LENGTH": "100"},
        )
        problem(response, 400)


def test_nobody_can_tell_who_accepted_it(both: tuple[Door, Door]) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "the same"}
    data = json.dumps(GOOD).encode()
    answer, expected = (door("POST", "/transactions", headers, data) for door in both)
    assert answer == expected  # the second is told of the first
    assert answer.status == 202


@each_of("method", ["GET", "POST"])
def test_a_handler_is_called_once_whatever_it_raises(world: World, method: str) -> None:
    begun: list[str] = []

    def fails(environ: Environ, _: Given) -> Response:
        begun.append(environ["PATH_INFO"])
        raise NotFound("half way")

    service = Service(world.settings)
    operation = Operation("things", OPERATION, "", {})
    for lane in (Lane.INLINE, Lane.THREAD):
        service.table.add([Row(method, f"/things/{lane}", operation, fails, lane)])
    front = front_of(service)
    for lane in (Lane.INLINE, Lane.THREAD):
        answer = asked(front, method, f"/things/{lane}")
        assert (answer.status, begun) == (404, [f"/things/{lane}"])
        assert json.loads(answer.body)["detail"] == "half way"
        begun.clear()
    front.close()
    service.ledger.close()


def test_there_are_no_two_rows_for_one_address(world: World) -> None:
    service = Service(world.settings)
    (tip,) = [row for row in service.table if row.rule == "/tip"]
    with pytest.raises(ValueError, match="there are two rows"):
        service.table.add([tip])


@each_of(("named", "scheme"), [("https", "https"), ("http", "http"), ('"><script>', "http")])
def test_a_proxy_may_name_https_as_the_scheme_and_nothing_else(named: str, scheme: str) -> None:
    asked_by = environ("GET", "/docs", {"X-Forwarded-Proto": named})
    assert asked_by["wsgi.url_scheme"] == scheme
