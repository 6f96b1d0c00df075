"""The pages behind the web server: slow backends and files keep nobody waiting."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import pytest
from flask import Flask

from backend.serving.front import Front
from frontend import site
from frontend.app import HEADERS
from frontend.settings import Settings
from frontend.site import PagesSite
from tests.loops import Client, Loop, answers, looping

ASK = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPLOAD = (
    b"POST /upload.json HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
    b"Content-Length: 0\r\n\r\n"
)


class Slow(Flask):
    """An application that answers no page before `may_answer` is set."""

    def __init__(self) -> None:
        super().__init__(__name__, static_folder=None)
        self.may_answer = threading.Event()
        self.add_url_rule("/health/live", "live", lambda: "alive")
        for path in ("/page", "/upload.json", "/flight_counter/proof"):
            self.add_url_rule(path, path, self._wait, methods=["GET", "POST"])

    def _wait(self) -> str:
        assert self.may_answer.wait(60)
        return "page"


@contextmanager
def slow_pages(threads: int = 2) -> Iterator[tuple[Loop, Slow]]:
    app = Slow()
    front = Front(PagesSite(Settings(threads=threads), app))
    with looping(front=front) as loop:
        try:
            yield loop, app
        finally:
            app.may_answer.set()


def only_answer(loop: Loop, client: Client) -> tuple[int, bytes]:
    """Wait for the only answer to a client; return its status and body."""
    loop.until(lambda: bool(answers(client.read())))
    (answer,) = answers(client.got)
    return answer


def test_a_full_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "MOST_PAGES_WAITING", 1)
    with slow_pages(threads=2) as (loop, app):
        waiting = [loop.client(ASK % b"/page") for _ in range(3)]
        loop.settle()
        ((status, body),) = answers(loop.answered(ASK % b"/page").got)
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert b"<h1>Service Unavailable</h1>" in body
        head = loop.clients[-1].got.partition(b"\r\n\r\n")[0].decode()
        assert "Retry-After: 5" in head
        assert all(f"{name}: {value}" in head for name, value in HEADERS.items())
        app.may_answer.set()
        for client in waiting:
            assert only_answer(loop, client) == (200, b"page")


def test_the_sign_of_life_waits_for_no_page() -> None:
    with slow_pages(threads=1) as (loop, _):
        loop.client(ASK % b"/page")
        loop.settle()
        assert answers(loop.answered(ASK % b"/health/live").got) == [(200, b"alive")]


@pytest.mark.parametrize(
    "ask", [UPLOAD, ASK % b"/page?engine=scan", ASK % b"/flight_counter/proof"]
)
def test_files_scans_and_proofs_keep_nobody_from_looking_at_pages(ask: bytes) -> None:
    with slow_pages(threads=1) as (loop, app):
        files = [loop.client(ask) for _ in range(5)]
        loop.settle()
        page = loop.client(ASK % b"/page")
        loop.settle()
        (pages,) = [lane for lane in loop.worker.wsgi.numbers() if lane.lane == "pages"]
        assert (pages.in_hand, pages.waiting) == (1, 0)
        app.may_answer.set()
        for client in [page, *files]:
            assert only_answer(loop, client)[0] == 200


def test_a_page_says_how_long_it_waited_for_a_thread() -> None:
    with slow_pages(threads=1) as (loop, app):
        app.may_answer.set()
        head = loop.answered(ASK % b"/page").got.partition(b"\r\n\r\n")[0].decode()
        assert "Server-Timing: wait;dur=" in head
        loop.settle()
        assert all(lane.waits_s == [] for lane in loop.worker.wsgi.numbers())  # none is kept


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 40_000, 431),
        (b"nonsense\r\n\r\n", 400),
        (b"POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
    ],
)
def test_what_http_refuses_is_a_page_too(sent: bytes, status: int) -> None:
    with slow_pages() as (loop, _):
        got = loop.answered(sent).got
        head, _, body = got.partition(b"\r\n\r\n")
        assert int(head.split()[1]) == status
        assert b"Content-Type: text/html; charset=utf-8" in head
        assert all(f"{name}: {value}".encode() in head for name, value in HEADERS.items())
        assert body.startswith(b"<!doctype html>")
