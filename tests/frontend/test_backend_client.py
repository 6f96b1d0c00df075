"""Asking the backend: what is no answer of it, is said; with several, the next one is asked."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus

import pytest

from frontend import backend_client
from frontend.backend_client import Backend
from frontend.errors import BackendAway, Refused
from tests.api.processes import free_port
from tests.frontend.fake_backend import Answer, answering
from tests.http_servers import Handler, served_by


@pytest.mark.parametrize(
    "answer",
    ["text", ["a", "list"], 7, None, {"half": "\ud800"}, b'{"a":"\xff"}', b'{"a":' * 10**5],
    ids=lambda answer: repr(answer)[:20],
)
def test_what_is_no_object_is_no_answer_of_a_backend(answer: object) -> None:
    with (
        answering(lambda path, parameters: answer) as url,
        pytest.raises(BackendAway, match="is not JSON"),
    ):
        Backend(url).get("/tip")


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"])
def test_what_takes_too_long_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    asked: list[str] = []

    class Slow(Handler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.wfile.write(begun)
            time.sleep(0.3)

    monkeypatch.setattr(backend_client, "ANSWER_S", 0.1)
    with served_by(Slow) as url, pytest.raises(BackendAway, match=r"no answer within 0\.1 s"):
        Backend(url).get("/tip")
    assert asked == ["/tip"]


@pytest.mark.parametrize("breaks", [1, 2])
def test_a_question_whose_connection_breaks_is_asked_once_more(breaks: int) -> None:
    asked: list[str] = []

    class Breaking(Handler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if len(asked) > breaks:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with served_by(Breaking) as url, ExitStack() as stack:
        if breaks > 1:
            stack.enter_context(pytest.raises(BackendAway))
        assert Backend(url).get("/tip") == {}
    assert len(asked) == 2


# --- several -------------------------------------------------------------------------------------


@pytest.fixture
def urls() -> Iterator[list[str]]:
    """Three backends, each of which tells its own number; only the last knows of /rare."""

    def named(number: int) -> Answer:
        return lambda path, parameters: (
            {"number": number} if number == 2 or path != "/rare" else HTTPStatus.NOT_FOUND
        )

    with ExitStack() as stack:
        yield [stack.enter_context(answering(named(number))) for number in range(3)]


def number(backend: Backend, path: str = "/tip") -> int:
    return int(backend.get(path)["number"])


def test_pages_are_spread_and_one_page_asks_one_backend(urls: list[str]) -> None:
    backend = Backend(*urls)
    numbers: list[int] = []
    for _ in range(6):
        backend.begin_page()
        on_page = {number(backend) for _ in range(4)}
        assert len(on_page) == 1
        numbers += on_page
    assert numbers == [0, 1, 2, 0, 1, 2]


def test_if_one_does_not_answer_the_next_is_asked_and_the_page_stays_there(urls: list[str]) -> None:
    backend = Backend(f"http://127.0.0.1:{free_port()}", *urls[1:])
    numbers = set()
    for _ in range(6):
        backend.begin_page()
        (of_page,) = {number(backend) for _ in range(3)}
        numbers.add(of_page)
    assert numbers == {1, 2}
    with pytest.raises(BackendAway):
        backend.add({}, "key", "")  # flights are added by the first alone


def test_what_one_does_not_know_another_may(urls: list[str]) -> None:
    assert number(Backend(*urls), "/rare") == 2
    with pytest.raises(Refused) as refused:
        Backend(*urls[:2]).get("/rare")
    assert refused.value.status == 404


def test_if_none_answers_that_is_said() -> None:
    gone = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    with pytest.raises(BackendAway, match=gone[0]):
        Backend(*gone).get("/tip")
    assert list(Backend(*gone).tips()) == [(url, None, None) for url in gone]
