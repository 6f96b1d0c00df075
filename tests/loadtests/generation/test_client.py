"""One request: whatever the server does, there is exactly one answer, judged by its bytes."""

import socket
from contextlib import AbstractContextManager
from time import monotonic, sleep

import gevent
import pytest

from loadtests.generation.client import Answer, Client, Origin
from loadtests.processes import free_port
from tests import http_servers
from tests.http_servers import Handler, served_by

OK = b"HTTP/1.1 200 OK\r\n"


def answering(
    sent: bytes, pause_s: float = 0, heard: list[bytes] | None = None
) -> AbstractContextManager[str]:
    """A server that answers each connection with these bytes, whatever it is asked."""

    def serve(connection: socket.socket) -> None:
        received = connection.recv(65536)
        if heard is not None:
            heard.append(received)
        sleep(pause_s)
        connection.sendall(sent)

    return http_servers.answering(serve, is_read=False)


def ask(url: str, timeout_s: float = 10.0) -> Answer:
    answers: list[Answer] = []
    Client(Origin(url), timeout_s=timeout_s).ask("/", answers.append)
    (answer,) = answers
    assert answer.sent_s <= answer.done_s
    return answer


@pytest.mark.parametrize(
    ("sent", "status", "body_bytes"),
    [
        (OK + b"Content-Length: 3\r\n\r\nabc", 200, 3),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200, 3),
        (OK + b"\r\nuntil the end", 200, 13),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 503, 0),
        (b"HTTP/1.1 204 None\r\n\r\n", 204, 0),
    ],
    ids=["length", "chunks", "until closed", "error", "no content"],
)
def test_whole_answers_have_their_status(sent: bytes, status: int, body_bytes: int) -> None:
    with answering(sent) as url:
        answer = ask(url)
    assert (answer.status, answer.body_bytes, answer.problem) == (status, body_bytes, "")


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"", "before an answer"),
        (OK, "before an answer"),
        (OK + b"Content-Length: 3\r\n\r\nab", "within the answer"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "within the answer"),
        (b"good morning\r\n\r\n", "HTTPParseError"),
    ],
    ids=["nothing", "half a header", "short", "chunks without end", "no HTTP"],
)
def test_torn_answers_have_none(sent: bytes, problem: str) -> None:
    with answering(sent) as url:
        answer = ask(url)
    assert (answer.status, answer.body_bytes) == (0, 0)
    assert problem in answer.problem


def test_nobody_there_is_no_answer() -> None:
    answer = ask(f"http://127.0.0.1:{free_port()}")
    assert answer.status == 0
    assert "refused" in answer.problem


def test_too_late_is_no_answer() -> None:
    with answering(OK + b"Content-Length: 0\r\n\r\n", pause_s=0.3) as url:
        answer = ask(url, timeout_s=0.1)
    assert (answer.status, answer.problem) == (0, "no whole answer within 0.1 s")


def test_an_answer_has_come_when_its_bytes_came_not_when_they_are_read() -> None:
    answers: list[Answer] = []
    with answering(OK + b"Content-Length: 0\r\n\r\n", pause_s=0.1) as url:
        asking = gevent.spawn(Client(Origin(url)).ask, "/", answers.append)
        gevent.sleep(0.05)  # it sends
        sleep(0.5)  # and nothing is read
        asking.join()
    assert 0.1 <= answers[0].done_s - answers[0].sent_s < 0.4


def test_a_request_is_sent_when_it_is_due() -> None:
    answers: list[Answer] = []
    due_s = monotonic() + 0.02
    with answering(OK + b"Content-Length: 0\r\n\r\n") as url:
        Client(Origin(url)).ask("/", answers.append, due_s=due_s)
    assert answers[0].sent_s >= due_s


def test_a_request_that_is_killed_has_its_answer_too() -> None:
    answers: list[Answer] = []
    with answering(OK + b"Content-Length: 0\r\n\r\n", pause_s=0.2) as url:
        asking = gevent.spawn(Client(Origin(url)).ask, "/", answers.append)
        gevent.sleep(0.05)
        asking.kill()
    assert [(answer.status, answer.problem) for answer in answers] == [
        (0, "stopped before the answer came")
    ]


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://127.0.0.1", "http://", ""])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must be like http"):
        Origin(url)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/transactions?mode=sync", "application/json"),
        ("/transactions/batch?mode=sync", "application/x-ndjson"),
    ],
)
def test_a_batch_is_posted_as_json_lines(path: str, kind: str) -> None:
    heard: list[bytes] = []
    with answering(OK + b"Content-Length: 0\r\n\r\n", heard=heard) as url:
        Client(Origin(url)).ask(path, lambda answer: None, "{}")
    assert f"Content-Type: {kind}\r\n".encode() in heard[0]


@pytest.mark.parametrize(("body", "method"), [("", "GET"), ('{"a": "é"}', "POST")])
def test_a_body_is_posted_and_nothing_is_got(body: str, method: str) -> None:
    heard: list[bytes] = []
    answers: list[Answer] = []
    with answering(OK + b"Content-Length: 0\r\n\r\n", heard=heard) as url:
        Client(Origin(url)).ask("/flights", answers.append, body)
    head, _, sent = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(f"{method} /flights HTTP/1.1\r\n".encode())
    assert sent.decode() == body
    assert (f"Content-Length: {len(body.encode())}".encode() in head) == bool(body)
    assert answers[0].method == method


@pytest.mark.parametrize(("keep_alive", "expected"), [(True, 1), (False, 3)])
def test_a_kept_connection_is_used_again(keep_alive: bool, expected: int) -> None:
    connections: list[object] = []

    class Counting(Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.client_address not in connections:
                connections.append(self.client_address)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with served_by(Counting) as url:
        client = Client(Origin(url), keep_alive=keep_alive)
        assert [client.ask("/", lambda answer: None).status for _ in range(3)] == [200] * 3
        client.close()
    assert len(connections) == expected
