"""The worker: its loop step by step, with a clock of its own; and services under rude clients."""

import errno
import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from backend.serving import client_bounds, lanes, worker
from backend.serving.connection import (
    ANSWER,
    BODY_WITHIN_S,
    BYTES_PER_S,
    FIRST_WITHIN_S,
    HEAD_WITHIN_S,
    IGNORED_BYTES,
    LEAVE_WITHIN_S,
    LINGER_S,
    MAX_FIELD_BYTES,
    MAX_FIELDS,
    MAX_HEAD_BYTES,
    MAX_LINE_BYTES,
    READ_WITHIN_S,
)
from backend.serving.worker import FrontWorker
from loadtests.machine_samples import cpu_s
from tests.api.processes import STOPS_WITHIN_S, Service, serving, until
from tests.api.worlds import world_in
from tests.cases import each_of
from tests.descriptors import descriptors_of
from tests.loops import BIG, KEEPALIVE_S, MAX_BODY_BYTES, Client, Loop, answers, looping
from tests.service.test_supervisor import QUESTION

pytestmark = pytest.mark.slow

HOST = b"Host: localhost\r\n"
CLOSE = b"Connection: close\r\n"
EXPECTS = b"Expect: 100-continue\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def request(target: str, *headers: bytes, body: bytes = b"", version: str = "1.1") -> bytes:
    """Returns the bytes of a request."""
    line, _, path = target.partition(" ")
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    head = f"{line} {path} HTTP/{version}\r\n".encode() + HOST + b"".join(headers) + length
    return head + b"\r\n" + body


QUICK, SLOW = request("GET /quick"), request("GET /slow")
MOST_IN_SOCKETS = 16 * 2**20  # may be sent before the system makes a client wait
LANES = each_of("path", ["/quick", "/slow", "/together"])


@pytest.fixture
def loop() -> Iterator[Loop]:
    with looping() as running:
        yield running


# --- receiving -----------------------------------------------------------------------------------


@LANES
def test_a_request_is_answered_when_its_last_byte_has_come(loop: Loop, path: str) -> None:
    data = request(f"POST {path}", body=b"given")
    client = loop.client()
    for at in range(len(data)):
        assert client.read() == b""
        client.say(data[at : at + 1])
        loop.step()
    loop.until_answered(client)
    assert answers(client.got) == [(200, f"{path}  given".encode())]


def test_requests_sent_at_once_are_answered_in_order_whoever_answers_them(loop: Loop) -> None:
    paths = [f"/{'quick' if n % 3 else 'slow'}?{n}" for n in range(40)]
    data = b"".join(request(f"POST {path}", body=b"b" * n) for n, path in enumerate(paths))
    received = answers(loop.answered(data, len(paths)).got)
    assert received == [
        (200, path.replace("?", " ").encode() + b" " + b"b" * n) for n, path in enumerate(paths)
    ]


def test_a_client_with_many_requests_gets_a_few_answers_at_a_time(loop: Loop) -> None:
    client = loop.client(QUICK * 1000)
    other = loop.client(QUICK)
    most = 0
    while not other.read():
        before = len(answers(client.read()))
        loop.step()
        most = max(most, len(answers(client.read())) - before)
    assert 0 < most <= 200
    loop.until(lambda: len(answers(client.read())) == 1000)


@LANES
def test_a_body_that_nobody_reads_is_not_the_next_request(loop: Loop, path: str) -> None:
    body = request("GET /quick?smuggled")
    client = loop.answered(request("POST /ignored", body=body) + request(f"GET {path}"), 2)
    assert answers(client.got) == [(200, b"/ignored  "), (200, f"{path}  ".encode())]


def test_what_is_too_large_is_refused_before_it_has_come(loop: Loop) -> None:
    body = b"Content-Length: %d\r\n" % (MAX_BODY_BYTES + 1)
    reply = loop.answered(request("POST /slow", body, EXPECTS))
    assert answers(reply.got)[0][0] == 413
    assert CONTINUE not in reply.got
    reply = loop.answered(b"GET /quick HTTP/1.1\r\nX: " + b"x" * (MAX_HEAD_BYTES + 4096))
    assert answers(reply.got)[0][0] == 431


HEADS = {
    "a field that fits": (b"X: " + b"x" * (MAX_FIELD_BYTES - 1), 200),
    "a long value": (b"X: " + b"x" * MAX_FIELD_BYTES, 431),
    "a long name": (b"x" * MAX_FIELD_BYTES + b": x", 431),
    "as many fields as may be": (b"\r\n".join([b"X: x"] * (MAX_FIELDS - 1)), 200),
    "one field too many": (b"\r\n".join([b"X: x"] * MAX_FIELDS), 431),
}


@each_of(("fields", "status"), HEADS.values())
def test_fields_have_bounds(loop: Loop, fields: bytes, status: int) -> None:
    reply = loop.answered(request("GET /quick", fields + b"\r\n"))
    assert answers(reply.got)[0][0] == status
    assert (b"application/problem+json" in reply.got) == (status != 200)


@each_of(("length", "status"), [(MAX_LINE_BYTES, 200), (MAX_LINE_BYTES + 1, 414)])
def test_an_address_has_a_bound(loop: Loop, length: int, status: int) -> None:
    reply = loop.answered(request("GET /quick?".ljust(len("GET ") + length, "x")))
    assert answers(reply.got)[0][0] == status


# --- 100 Continue --------------------------------------------------------------------------------


@LANES
def test_whoever_waits_for_100_continue_hears_it_once(loop: Loop, path: str) -> None:
    data = request(f"POST {path}", EXPECTS, body=b"given")
    client = loop.client(data[:-5])
    loop.until(lambda: bool(client.read()))
    assert client.got == CONTINUE
    client.say(data[-5:])
    loop.until(lambda: len(answers(client.read())) == 2)
    assert client.got.count(b"100 Continue") == 1
    assert answers(client.got)[1] == (200, f"{path}  given".encode())


@LANES
@each_of("body", [b"", b"given"])
def test_whoever_does_not_wait_for_100_continue_does_not_hear_it(
    loop: Loop, path: str, body: bytes
) -> None:
    reply = loop.answered(request(f"POST {path}", EXPECTS, body=body))
    assert answers(reply.got) == [(200, f"{path}  ".encode() + body)]


# --- versions, methods, ends ---------------------------------------------------------------------


@LANES
@each_of(
    ("version", "header", "is_kept"),
    [
        ("1.1", b"", True),
        ("1.1", CLOSE, False),
        ("1.0", b"", False),
        ("1.0", b"Connection: keep-alive\r\n", False),
    ],
)
def test_a_connection_is_kept_as_its_version_says(
    loop: Loop, path: str, version: str, header: bytes, is_kept: bool
) -> None:
    data = request(f"GET {path}", header, version=version)
    client = loop.answered(data + data, 2)
    loop.settle()
    client.read()
    assert len(answers(client.got)) == (2 if is_kept else 1)
    assert client.has_ended != is_kept
    assert client.got.startswith(b"HTTP/1.1 200")  # its own version (RFC 9110 section 2.5)


@LANES
def test_head_gets_the_head_only(loop: Loop, path: str) -> None:
    client = loop.client(request(f"HEAD {path}") + request(f"GET {path}", CLOSE))
    loop.until(client.ended)
    first, _, rest = client.got.partition(b"\r\n\r\n")
    assert b"content-length:" in first.lower()
    assert rest.startswith(b"HTTP/1.1 200")


@LANES
def test_whoever_has_closed_its_half_gets_a_big_answer_whole(loop: Loop, path: str) -> None:
    client = loop.client(request(f"GET {path}/big"))
    client.socket.shutdown(socket.SHUT_WR)
    loop.until(client.ended)
    assert [(status, len(body)) for status, body in answers(client.got)] == [(200, BIG)]


@LANES
def test_an_error_of_the_application_is_a_problem_of_its_request_alone(
    loop: Loop, path: str
) -> None:
    client = loop.answered(request(f"GET {path}/error") + QUICK, 2)
    (status, body), after = answers(client.got)
    assert (status, b"application/problem+json" in client.got) == (500, True)
    assert b"ValueError" not in body
    assert after == (200, b"/quick  ")


def test_an_error_of_the_front_itself_is_a_problem_and_ends_the_connection(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(environ: object) -> None:
        raise ValueError(environ)

    monkeypatch.setattr(loop.service.table, "match", fails)
    client = loop.answered(QUICK + QUICK, 2)
    loop.until(client.ended)
    ((status, body),) = answers(client.got)
    assert (status, b"application/problem+json" in client.got) == (500, True)
    assert b"ValueError" not in body


@LANES
def test_a_client_may_vanish_at_any_time(loop: Loop, path: str) -> None:
    data = request(f"POST {path}/big", body=b"given")
    for at in (0, 5, len(data) - 1, len(data)):
        for rounds in range(3):
            client = loop.client(data[:at])
            for _ in range(rounds):
                loop.step()
            client.reset()
    loop.until(lambda: not loop.worker.connections)


def test_a_client_may_vanish_while_a_thread_answers_it(loop: Loop) -> None:
    with loop.held():
        client = loop.client(SLOW + SLOW)
        loop.until(lambda: len(loop.worker.connections) == 1)
        client.reset()
        loop.settle()
    loop.until(lambda: not loop.worker.connections)
    assert answers(loop.answered(SLOW).got)[0][0] == 200


# --- time ----------------------------------------------------------------------------------------


def ends_after(loop: Loop, client: Client, seconds: float) -> list[int]:
    """Check that the loop ends with `client` after this time, not earlier; what it has said."""
    loop.wait(seconds - 1.5)
    assert not client.ended()
    loop.wait(3)
    loop.until(client.ended)
    return [status for status, _ in answers(client.got)]


def test_silence_ends_without_a_word(loop: Loop) -> None:
    client = loop.client()
    loop.settle()
    assert ends_after(loop, client, HEAD_WITHIN_S) == []


@pytest.mark.parametrize("before", [b"", QUICK, SLOW], ids=["first", "after quick", "after slow"])
def test_a_head_that_does_not_end_is_told(loop: Loop, before: bytes) -> None:
    client = loop.answered(before + b"GET /quick", 1 if before else 0)
    loop.settle()
    assert ends_after(loop, client, HEAD_WITHIN_S)[-1] == 408


DRIBBLES = {  # what comes first, and what comes again and again
    "a head": (b"GET /quick HTTP/1.1\r\nX: ", b"x"),
    "fields": (b"GET /quick HTTP/1.1\r\n", b"X: y\r\n"),
    "bare line ends": (b"\r\n", b"\r\n"),
    "a body": (request("POST /slow", b"Content-Length: 1000\r\n"), b"x"),
    "line ends behind an answer": (QUICK, b"\r\n"),
}


@pytest.mark.parametrize("what", DRIBBLES)
def test_dribbling_gains_no_time(loop: Loop, what: str) -> None:
    begun, more = DRIBBLES[what]
    client = loop.client(begun)
    loop.settle()
    before = client.read()
    for _ in range(int(HEAD_WITHIN_S) - 1):
        client.say(more)
        loop.wait(1)
        assert client.read() == before
    client.say(more)
    loop.wait(2)
    assert answers(client.read())[-1][0] == 408


def test_the_server_looks_for_late_clients_by_itself(loop: Loop) -> None:
    client = loop.client(b"GET /quick HTTP/1.1\r\nX: ")
    loop.settle()
    loop.later_s += HEAD_WITHIN_S + 1
    loop.worker.loop.run_until_complete(loop.worker.server.on_tick(0))
    assert answers(client.read())[0][0] == 408


def test_a_body_may_take_as_long_as_it_is_large(loop: Loop) -> None:
    client = loop.client(request("POST /slow", body=b"x" * MAX_BODY_BYTES)[:-1])
    loop.settle()
    assert ends_after(loop, client, BODY_WITHIN_S + MAX_BODY_BYTES / BYTES_PER_S) == [408]


@LANES
def test_an_idle_connection_is_kept_for_a_while(loop: Loop, path: str) -> None:
    client = loop.answered(request(f"GET {path}"))
    assert ends_after(loop, client, KEEPALIVE_S) == [200]


def test_whoever_does_not_close_is_closed(loop: Loop) -> None:
    client = loop.answered(b"nonsense\r\n\r\n")
    loop.settle()
    assert len(loop.worker.connections) == 1
    client.say(b"more and more" * 1000)
    loop.wait(LINGER_S + 1)
    assert len(loop.worker.connections) == 0
    assert len(answers(client.got)) == 1


@LANES
def test_an_answer_that_is_not_read_is_given_up_and_never_spoiled(loop: Loop, path: str) -> None:
    client = loop.client(request(f"GET {path}/big") + QUICK + b"GET /in part")
    loop.until(lambda: any(connection.unsent_bytes() for connection in loop.worker.connections))
    loop.wait(READ_WITHIN_S + BIG / BYTES_PER_S + 2)
    loop.until(client.ended)
    assert client.got.count(b"HTTP/1.1") == 1
    assert len(client.got) < BIG


def test_a_thread_waits_for_its_work_without_limit(loop: Loop) -> None:
    with loop.held():
        client = loop.client(SLOW)
        loop.settle()
        loop.wait(1000)
    loop.until_answered(client)


# --- together ------------------------------------------------------------------------------------


def test_a_sign_of_life_that_cannot_be_written_ends_no_request(loop: Loop) -> None:
    """The file for it may be on a disk that is gone."""

    def refuse() -> None:
        raise OSError(errno.EIO, "Input/output error")

    loop.worker.notify = refuse
    loop.worker.loop.run_until_complete(loop.worker.server.on_tick(0))
    assert answers(loop.answered(QUICK).got)[0][0] == 200


def joining(number: int) -> bytes:
    """Returns a request that is answered together with others."""
    return request(f"GET /together?{number}")


def test_requests_of_one_turn_are_answered_together(loop: Loop) -> None:
    clients = [loop.client() for _ in range(5)]
    loop.settle()
    for number, client in enumerate(clients):
        client.say(joining(number))
    loop.until_answered(*clients)
    assert [sorted(group) for group in loop.application.groups] == [list("01234")]
    received = [answers(client.got) for client in clients]
    assert received == [[(200, b"/together %d " % n)] for n in range(5)]


def test_what_comes_while_a_group_is_in_hand_is_the_next_group(loop: Loop) -> None:
    with loop.held():
        first = loop.client(joining(0))
        loop.until(lambda: bool(loop.application.groups))
        others = [loop.client(joining(number)) for number in (1, 2)]
        loop.settle()
        assert answers(loop.answered(QUICK).got)[0][0] == 200
        assert not any(client.read() for client in (first, *others))
    loop.until_answered(first, *others)
    assert [sorted(group) for group in loop.application.groups] == [["0"], ["1", "2"]]


def test_a_group_has_a_bound(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_TOGETHER", 3)
    clients = [loop.client() for _ in range(8)]
    loop.settle()
    for number, client in enumerate(clients):
        client.say(joining(number))
    loop.until_answered(*clients)
    assert sum(map(len, loop.application.groups)) == 8
    assert max(map(len, loop.application.groups)) == 3


def test_an_error_or_a_client_that_vanishes_leaves_the_rest_of_its_group_alone(loop: Loop) -> None:
    with loop.held():
        clients = [loop.client() for _ in range(3)]
        loop.settle()
        for number, client in enumerate(clients):
            client.say(request("GET /together/error") if number == 1 else joining(number))
        loop.until(lambda: bool(loop.application.groups))
        clients[0].reset()
        loop.settle()
    loop.until_answered(clients[1], clients[2])
    assert answers(clients[1].got)[0][0] == 500
    assert answers(clients[2].got) == [(200, b"/together 2 ")]
    assert answers(loop.answered(joining(3)).got)[0][0] == 200


# --- fields and addresses ------------------------------------------------------------------------


def test_a_field_with_an_underscore_is_not_taken_for_another_one(loop: Loop) -> None:
    client = loop.answered(request("POST /quick", b"Content_Length: 5\r\n") + QUICK, 2)
    assert answers(client.got) == [(200, b"/quick  "), (200, b"/quick  ")]
    reply = loop.answered(request("GET /quick", b"X_Request_ID: spoofed\r\n")).got
    assert b"spoofed" not in reply


@each_of(
    ("target", "status"),
    [
        ("http://localhost/quick", 200),
        ("http://localhost:8000/quick", 200),
        ("http://[::1]:8000/quick", 200),
        ("http://user@localhost/quick", 200),
        ("/quick#part", 200),
        ("http://evil.example/quick", 421),
        ("http://localhost@evil.example/quick", 421),
        ("http://localhost", 404),
        ("//localhost/quick", 404),
        ("localhost/quick", 400),
    ],
)
def test_an_address_may_be_absolute_and_names_the_host(
    loop: Loop, target: str, status: int
) -> None:
    assert answers(loop.answered(request(f"GET {target}")).got)[0][0] == status


# --- bounds --------------------------------------------------------------------------------------


def test_answers_that_nobody_reads_hold_no_thread(loop: Loop) -> None:
    for _ in range(6):  # with two threads
        loop.client(request("GET /slow/big"), SO_RCVBUF=4096)
    assert answers(loop.answered(SLOW).got)[0][0] == 200


def test_of_too_many_unread_answers_the_oldest_is_given_up(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_bounds, "MAX_UNSENT_BYTES", int(BIG * 2.5))
    clients = []
    for _ in range(4):
        clients.append(loop.client(request("GET /quick/big")))
        loop.until(clients[-1].hears)
        loop.later_s += 400  # the system takes more from some than from others
    kept = len(loop.worker.connections)
    assert 0 < kept < 4
    assert sum(connection.unsent_bytes() for connection in loop.worker.connections) <= BIG * 2.5
    for client in clients[-kept:]:
        loop.until_answered(client)
    for client in clients[:-kept]:
        assert not answers(client.read())
        assert client.has_ended


def test_one_answer_may_be_as_large_as_it_is(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_bounds, "MAX_UNSENT_BYTES", 1000)
    assert len(answers(loop.answered(request("GET /slow/big")).got)[0][1]) == BIG


def test_too_much_at_once_is_refused_but_small_requests_are_not(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_bounds, "MAX_RECEIVED_BYTES", 100_000)
    large = request("POST /slow", body=b"x" * MAX_BODY_BYTES)
    first = loop.client(large[:-1])
    second = loop.client(large[:-1])
    loop.until(lambda: bool(answers(first.read() + second.read())))
    assert len(first.got + second.got) == len(first.got or second.got)  # one of them is enough
    refused, other = (first, second) if first.got else (second, first)
    assert answers(refused.got)[0][0] == 503
    assert b"Retry-After: 5\r\n" in refused.got
    assert answers(loop.answered(request("POST /slow", body=b"small")).got)[0][0] == 200
    other.say(large[-1:])
    loop.until_answered(other)
    assert answers(other.got)[0][0] == 200


@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_request_in_hand_and_what_waits_behind_it_count_as_received(
    loop: Loop, is_on_disk: bool
) -> None:
    sent = request("GET /slow", body=b"x" * 40_000) + b"x" * 10_000
    if is_on_disk:
        loop.worker.server.bounds.site.max_body_bytes_in_memory = 1000
    with loop.held():
        client = loop.client(sent)
        loop.settle()
        (connection,) = loop.worker.connections
        held_bytes = connection.held_bytes()
    loop.until(client.hears)
    assert held_bytes == (10_000 if is_on_disk else len(sent))


def test_beyond_its_share_an_address_loses_its_oldest_idle_connection() -> None:
    with looping(worker_connections=6) as loop:
        with loop.held():
            busy = loop.client(SLOW)
            loop.settle()
            idle = [loop.answered(QUICK), loop.client(QUICK[:10])]
            loop.later_s += 1
            loop.settle()
            again = loop.answered(QUICK)
            loop.until(idle[0].ended)
            assert (len(loop.worker.connections), idle[1].ended()) == (3, False)
            loop.answered(QUICK)
            loop.until(idle[1].ended)
        loop.until_answered(busy)
        again.say(QUICK)
        loop.until(lambda: len(answers(again.read())) == 2)


def test_whoever_finds_all_places_busy_is_told_at_once() -> None:
    with looping(worker_connections=4) as loop:
        with loop.held():
            busy = [loop.client(SLOW) for _ in range(2)]
            loop.until(lambda: all(one.waits_for == ANSWER for one in loop.worker.connections))
            refused = loop.answered(b"")
            assert answers(refused.got)[0][0] == 503
            loop.until(refused.ended)
        loop.until_answered(*busy)


def test_connections_leave_descriptors_for_the_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        with looping(worker_connections=5000) as loop:
            assert 0 < loop.worker.server.bounds.most < min(soft, 1024) - 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- taking turns --------------------------------------------------------------------------------


OTHER = 7  # the place of another worker


@pytest.fixture
def has_another(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """There is another worker, which has no connection, and time enough to leave it one."""
    monkeypatch.setattr(worker, "LEAVE_TO_OTHERS_S", 0.5)
    monkeypatch.setattr(worker, "TAKEN_AFTER_S", 4.0)
    FrontWorker._loads[OTHER] = 0
    yield
    FrontWorker._loads[OTHER] = -1


@pytest.mark.usefixtures("has_another")
def test_a_connection_is_left_to_a_worker_with_fewer_but_not_for_long(loop: Loop) -> None:
    FrontWorker._loads[OTHER] = 1
    loop.answered(QUICK)
    FrontWorker._loads[OTHER] = 0
    client = loop.client(QUICK)
    loop.settle()
    assert (client.read(), len(loop.worker.connections)) == (b"", 1)
    loop.until_answered(client)


@pytest.mark.usefixtures("has_another")
def test_each_connection_is_left_anew_if_the_other_worker_took_the_last_one(loop: Loop) -> None:
    FrontWorker._loads[OTHER] = 1
    loop.answered(QUICK)
    FrontWorker._loads[OTHER] = 0
    loop.client()
    loop.settle()
    taken, _ = loop.listener.accept()
    taken.close()
    loop.later_s += 5.0
    client = loop.client(QUICK)
    loop.settle()
    assert (client.read(), len(loop.worker.connections)) == (b"", 1)
    loop.until_answered(client)


@pytest.mark.usefixtures("has_another")
def test_a_request_in_a_lane_counts_as_one_connection_more(loop: Loop) -> None:
    with loop.held():
        FrontWorker._loads[OTHER] = 1
        slow = loop.client(SLOW)
        loop.until(lambda: loop.worker.load == 2)
        client = loop.client(QUICK)
        loop.settle()
        assert (client.read(), len(loop.worker.connections)) == (b"", 1)
    loop.until_answered(slow)
    loop.until_answered(client)


def test_a_worker_alone_accepts_at_once(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LEAVE_TO_OTHERS_S", 60.0)
    loop.answered(QUICK)
    client = loop.client(QUICK)
    loop.settle()
    assert answers(client.read())


def test_a_worker_that_was_forgotten_by_mistake_goes_on(loop: Loop) -> None:
    FrontWorker.forget(loop.worker)  # one with the same place has died
    assert answers(loop.answered(QUICK).got)[0][0] == 200


# --- other sockets -------------------------------------------------------------------------------


@LANES
def test_it_listens_at_ipv6(path: str) -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
            address = probe.getsockname()[:2]
    except OSError:
        pytest.skip("there is no IPv6 here")
    with looping(address, socket.AF_INET6) as loop:
        assert answers(loop.answered(request(f"GET {path}")).got)[0][0] == 200


@LANES
def test_it_listens_at_a_unix_socket(tmp_path: Path, path: str) -> None:
    with looping(str(tmp_path / path[1:]), socket.AF_UNIX) as loop:
        assert answers(loop.answered(request(f"GET {path}")).got)[0][0] == 200
        assert answers(loop.answered(b"nonsense\r\n\r\n").got)[0][0] == 400


# --- whole services ------------------------------------------------------------------------------

ASK = request(f"GET {QUESTION}")


def connected(service: Service, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", service.port), 10)
    connection.sendall(data)
    return connection


def answer_on(connection: socket.socket) -> int:
    """Read the status of the next answer."""
    received = b""
    while not answers(received):
        part = connection.recv(65536)
        assert part, received
        received += part
    return answers(received)[0][0]


def connections_of(pid: int, port: int) -> int:
    """Count the connections at `port` that a process has accepted."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].partition(":")[2], 16) == port and fields[3] == "01":  # established
            inodes.add(f"socket:[{fields[9]}]")
    return sum(target in inodes for target in descriptors_of(pid).values())


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def spread(service: Service, count: int) -> list[int]:
    """Open `count` connections at once; returns how many of them each worker has."""
    until(lambda: not any(connections_of(pid, service.port) for pid in service.booted()))
    with ExitStack() as held:
        connections = [held.enter_context(connected(service, ASK)) for _ in range(count)]
        assert {answer_on(connection) for connection in connections} == {200}
        counts = [connections_of(pid, service.port) for pid in service.booted()]
    assert sum(counts) == count
    return counts


def is_spread_evenly(service: Service) -> bool:
    """A worker takes more than its share if the machine does not let the other run: try again."""
    return any(min(spread(service, 40)) >= 10 for _ in range(3))


def test_connections_are_spread_evenly_also_after_a_worker_was_killed(service: Service) -> None:
    assert is_spread_evenly(service)
    killed = service.booted()[0]
    held = [connected(service, ASK) for _ in range(10)]
    assert {answer_on(connection) for connection in held} == {200}
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in service.booted() and len(service.booted()) == 2)
    for connection in held:
        connection.close()
    assert is_spread_evenly(service)


def test_connections_cost_nothing_once_they_have_ended(service: Service) -> None:
    def trouble() -> None:
        half = request("POST /transactions", body=b"x" * 1000)[:-500]
        for n in range(100):
            client = Client(("127.0.0.1", service.port), socket.AF_INET)
            client.say([ASK, half, b"\xff" * 100 + b"\r\n\r\n", ASK * 5, ASK[:20], b""][n % 6])
            if n % 2:
                client.reset()
            else:
                client.socket.close()
            service.get("/blocks/1" if n % 10 == 0 else QUESTION)

    def all_ended() -> bool:
        return not any(connections_of(pid, service.port) for pid in service.booted())

    trouble()
    until(all_ended)
    before = {pid: len(descriptors_of(pid)) for pid in service.booted()}
    for _ in range(3):
        trouble()
    until(all_ended)
    assert set(before) == set(service.booted())
    for pid, count in before.items():
        assert len(descriptors_of(pid)) <= count + 30  # files that threads open when first used
        assert threads_of(pid) <= 8 + 4
    assert "Traceback" not in service.said()


def test_a_worker_without_descriptors_waits_until_it_has_some(folder: Path) -> None:
    world_in(folder)
    with serving(folder) as service:
        workers = service.booted()
        wait_for_all(service, len(workers))  # a worker that starts looks how many it may have
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for pid in workers:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(descriptors_of(pid)) + 10, hard))
        held = [connected(service) for _ in range(60)]
        until(lambda: "cannot accept connections" in service.said())
        busy_s = cpu_s(workers)
        time.sleep(1)
        after_s = cpu_s(workers)  # it does not try all the time
        assert all(after_s[pid] - busy_s[pid] < 0.8 for pid in workers)
        for connection in held:
            connection.close()
        until(lambda: service.answers(QUESTION))
        assert service.booted() == workers, service.said()


def wait_for_all(service: Service, count: int) -> None:
    """Wait until so many workers have answered; their ids of requests begin differently."""
    answered: set[str] = set()

    def have_answered() -> bool:
        request_id = service.get("/health/live").headers["X-Request-ID"]
        answered.add(request_id.partition("-")[0])
        return len(answered) == count

    until(have_answered)


def test_who_waits_for_a_block_keeps_nobody_from_asking_and_is_answered_at_a_stop(
    folder: Path,
) -> None:
    """The stop waits for nobody who does not wait for a block."""
    slow = {"FLIGHTCHAIN_MINE_INTERVAL_S": 3600, "FLIGHTCHAIN_COMMIT_WAIT_S": 60}
    # Room for all of them in one worker, because it may get more than its half.
    room = {"FLIGHTCHAIN_THREADS": 4, "FLIGHTCHAIN_LANE_QUEUE": 16}
    with (
        serving(folder, **room, **slow) as service,
        ExitStack() as held,
        ThreadPoolExecutor(16) as pool,
    ):
        waiting = [pool.submit(service.post, mode="commit") for _ in range(16)]
        until(lambda: sum(post.done() for post in waiting) >= 12)  # 2 of 4 threads a worker wait
        for _ in range(10):
            for path in ("/health/live", "/tip", QUESTION):
                assert service.get(path).status_code == 200
        assert service.post().status_code == 202
        assert service.json("/tip")["pending"] == 17
        assert not all(post.done() for post in waiting)
        for data in (b"", ASK[:20], ASK, request("GET /blocks"), ASK * 300):
            held.enter_context(connected(service, data))
        assert service.stop(within_s=STOPS_WITHIN_S) == 0
        assert [post.result().status_code for post in waiting] == [202] * 16
        assert "Traceback" not in service.said()


def test_who_has_just_connected_may_still_ask_while_the_worker_stops(loop: Loop) -> None:
    quick, silent = loop.client(), loop.client()
    loop.until(lambda: len(loop.worker.connections) == 2)
    for connection in list(loop.worker.connections):
        connection.shutdown()
    quick.say(QUICK)
    loop.until_answered(quick)
    assert not silent.ended()
    loop.later_s += FIRST_WITHIN_S
    for connection in list(loop.worker.connections):
        connection.shutdown()
    loop.until(lambda: quick.ended() and silent.ended())
    assert [status for status, _ in answers(quick.got)] == [200]
    assert silent.got == b""


def test_a_stop_soon_leaves_a_client_that_keeps_an_idle_connection(loop: Loop) -> None:
    client = loop.client()
    client.say(QUICK)
    loop.until_answered(client)
    loop.later_s += FIRST_WITHIN_S
    (connection,) = loop.worker.connections
    connection.shutdown()
    loop.until(client.ended)
    connection.shutdown()
    loop.worker.tick()
    assert loop.worker.connections
    loop.later_s += LEAVE_WITHIN_S
    connection.shutdown()
    loop.worker.tick()
    loop.until(lambda: not loop.worker.connections)


def test_a_client_that_never_stops_sending_has_to_wait_and_is_cut_off(loop: Loop) -> None:
    client = loop.client(b"nonsense\r\n\r\n")
    loop.until_answered(client)
    client.socket.setblocking(False)
    sent = 0
    with pytest.raises(BlockingIOError):
        while sent < MOST_IN_SOCKETS + 100 * IGNORED_BYTES:
            sent += client.socket.send(b"x" * 8192)
            loop.step(0)
    assert len(loop.worker.connections) == 1
    loop.wait(LINGER_S + 1)
    assert len(loop.worker.connections) == 0
    assert answers(client.got)[0][0] == 400
