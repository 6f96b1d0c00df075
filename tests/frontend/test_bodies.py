"""What is posted is judged by its head, bounded in number, and kept on a disk."""

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from io import BytesIO
from typing import IO

import pytest
from flask import Flask, request
from flask.testing import FlaskClient

from backend.base.settings import Settings as BackendSettings
from backend.serving import front as front_module
from backend.serving.front import Front
from frontend import bodies
from frontend.app import create_app
from frontend.bodies import ANY_FILE, FIELD_BYTES, FORM_BYTES, MAX_FORM_PARTS, TAKES_FILES
from frontend.settings import Settings, from_environment
from frontend.site import MOST_FILES, PagesSite
from tests.loops import Client, Loop, answers, looping

MOST = 2**20
SETTINGS = Settings(backend_url="http://127.0.0.1:1", max_body_bytes=MOST)
MULTIPART, URLENCODED = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
FILE_HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
FIELD = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
PIECE = 50_000


def head(path: str, kind: str, length: int, **headers: str) -> bytes:
    """The head of a post, which promises a body."""
    given = {"Host": "localhost", "Origin": "http://localhost", "Content-Type": kind, **headers}
    lines = (f"{name}: {value}" for name, value in given.items())
    return "\r\n".join(
        [f"POST {path} HTTP/1.1", *lines, f"Content-Length: {length}", "", ""]
    ).encode()


@contextmanager
def served(app: Flask | None = None) -> Iterator[Loop]:
    """The pages, or another application behind their site, without a backend."""
    with looping(front=Front(PagesSite(SETTINGS, app or create_app(SETTINGS)))) as loop:
        yield loop


def answer_to(loop: Loop, sent: bytes) -> tuple[int, str]:
    """Send what may be no whole request; return the status and the body of the answer."""
    ((status, body),) = answers(loop.answered(sent).got)
    return status, body.decode()


def waits(loop: Loop, sent: bytes) -> Client:
    """Send a head, for whose body the pages wait."""
    client = loop.client(sent)
    loop.settle()
    assert client.read() == b""
    assert not client.has_ended
    return client


def sent_whole(loop: Loop, path: str, kind: str, length: int) -> tuple[int, str]:
    """Send a body of this length; return the answer."""
    client = loop.client(head(path, kind, length))
    for at in range(0, length, PIECE):
        client.say(b"x" * min(PIECE, length - at))
        loop.step()
    loop.until_answered(client)
    ((status, body),) = answers(client.got)
    return status, body.decode()


@pytest.mark.parametrize(
    ("path", "kind", "most"),
    [
        ("/upload", MULTIPART, FORM_BYTES + MOST),
        ("/upload", URLENCODED, FORM_BYTES),
        ("/upload.json", ANY_FILE, MOST),
        ("/upload.json", "text/csv", FORM_BYTES),
        ("/upload.json", URLENCODED, FORM_BYTES),
        ("/add", URLENCODED, FORM_BYTES),
        ("/add", MULTIPART, FORM_BYTES),
        ("/nothing", "text/csv", FORM_BYTES),
        ("/health/live", "text/csv", FORM_BYTES),
    ],
)
def test_a_body_that_is_too_long_is_refused_unread(path: str, kind: str, most: int) -> None:
    with served() as loop:
        status, text = answer_to(loop, head(path, kind, most + 1))
        assert status == 413
        assert ("Too long" if path == "/upload.json" else "othing was added") in text
        waits(loop, head(path, kind, most))


def test_a_visitor_without_scripts_is_told_the_limit_and_what_to_do() -> None:
    with served() as loop:
        _, text = answer_to(loop, head("/upload", MULTIPART, 30 * 2**20))
    assert "The file is longer than 1 MB" in text
    for advice in ("With JavaScript", "cut it into several files", "python -m backend import FILE"):
        assert advice in text


@pytest.mark.parametrize(
    "headers", [{"Content-Encoding": "gzip"}, {"Origin": "http://evil.example"}]
)
def test_what_is_refused_for_other_reasons_is_not_read_either(headers: dict[str, str]) -> None:
    with served() as loop:
        status, _ = answer_to(loop, head("/upload", MULTIPART, 1000, **headers))
    assert status in {403, 415}


def test_every_route_that_takes_a_file_is_in_the_table_and_exists() -> None:
    posted = {
        r.rule for r in create_app(SETTINGS).url_map.iter_rules() if "POST" in (r.methods or ())
    }
    assert posted == {"/add", "/months", "/upload/<import_id>", *TAKES_FILES}


def test_only_so_many_files_are_received_at_once_and_a_place_becomes_free() -> None:
    with served() as loop:
        first, *_ = [waits(loop, head("/upload", MULTIPART, MOST)) for _ in range(MOST_FILES)]
        status, text = answer_to(loop, head("/upload", MULTIPART, MOST))
        assert status == 503
        assert "send it again in a few seconds" in text
        assert b"Retry-After: 5\r\n" in loop.clients[-1].got
        _, text = answer_to(loop, head("/add", URLENCODED, 3) + b"a=1")
        assert "The ledger does not answer" in text  # it waits for no file
        first.reset()
        loop.settle()
        assert answer_to(loop, head("/upload", MULTIPART, 10) + b"0123456789")[0] == 422


class Looking(Flask):
    """Says of each body whether it is on a disk, and what it is."""

    def __init__(self) -> None:
        super().__init__(__name__, static_folder=None)
        self.add_url_rule("/upload.json", view_func=self.look, methods=["POST"])

    @staticmethod
    def look() -> dict[str, object]:
        """Look at the body of a request."""
        body = request.environ["wsgi.input"]
        links = None if isinstance(body, BytesIO) else os.fstat(body.fileno()).st_nlink
        return {"links": links, "length": len(request.get_data())}


@pytest.mark.parametrize(
    ("length", "links"), [(10, "null"), (FORM_BYTES, "null"), (FORM_BYTES + 1, "0"), (MOST, "0")]
)
def test_a_long_body_is_on_a_disk_and_has_no_name_there(length: int, links: str) -> None:
    with served(Looking()) as loop:
        answer = sent_whole(loop, "/upload.json", ANY_FILE, length)
    assert answer == (200, f'{{"length":{length},"links":{links}}}\n')


def test_what_a_client_has_not_sent_completely_is_not_looked_at() -> None:
    with served() as loop:
        for _ in range(MOST_FILES + 1):  # each gives its place back
            client = waits(loop, head("/upload.json", ANY_FILE, MOST) + b"x" * PIECE)
            client.socket.shutdown(socket.SHUT_WR)
            loop.until(client.ended)
            assert client.got == b""


def full_disk(*_: object) -> IO[bytes]:
    """A file on a disk without room."""
    return open("/dev/full", "w+b", buffering=0)  # noqa: PTH123


def no_inode(*_: object) -> IO[bytes]:
    """Raise what a disk says on which no file can be made."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("disk", [full_disk, no_inode])
def test_a_disk_that_is_full_when_a_file_arrives_is_named(
    monkeypatch: pytest.MonkeyPatch, disk: Callable[..., IO[bytes]]
) -> None:
    monkeypatch.setattr(front_module, "body_file", disk)
    with served() as loop:
        status, text = sent_whole(loop, "/upload", MULTIPART, MOST)
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "the disk of these pages has no room" in text


def test_a_disk_that_is_full_when_a_file_is_taken_out_of_a_form_is_named(
    monkeypatch: pytest.MonkeyPatch, lonely_pages: FlaskClient
) -> None:
    monkeypatch.setattr(bodies, "body_file", full_disk)
    sent = FILE_HEAD + b"x" * MOST + b"\r\n--x--\r\n"
    headers = {"Origin": "http://localhost"}
    response = lonely_pages.post("/upload", data=sent, content_type=MULTIPART, headers=headers)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert "the disk of these pages has no room" in response.text
    assert "othing was added" in response.text


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (FILE_HEAD + b"1\r\n" + FILE_HEAD, "one file"),
        (FIELD * (MAX_FORM_PARTS + 1), "too many fields, or too long ones"),
        (FIELD + b"x" * FIELD_BYTES, "too many fields, or too long ones"),
    ],
)
def test_a_form_holds_one_file(lonely_pages: FlaskClient, parts: bytes, reason: str) -> None:
    sent = parts + b"1\r\n--x--\r\n"
    headers = {"Origin": "http://localhost"}
    response = lonely_pages.post("/upload", data=sent, content_type=MULTIPART, headers=headers)
    assert response.status_code == 413
    assert reason in response.text
    assert "othing was added" in response.text


# --- the setting


def test_the_longest_file_is_the_longest_batch_of_the_service() -> None:
    name, default = "FLIGHTCHAIN_MAX_BODY_BYTES", BackendSettings().max_body_bytes
    assert from_environment({}).max_body_bytes == default
    assert from_environment({name: "65536"}).max_body_bytes == 65536
