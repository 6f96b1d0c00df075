"""What is posted is judged by its head, bounded in number, and kept on a disk."""

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from io import BytesIO
from types import SimpleNamespace
from typing import IO, Any

import pytest
from flask import Flask, request
from flask.testing import FlaskClient

from backend.base.errors import InvalidSetting
from backend.base.settings import Settings as BackendSettings
from backend.serving import front as front_module
from backend.serving.front import Front
from frontend import bodies
from frontend.app import create_app
from frontend.bodies import ANY_FILE, FIELD_BYTES, FORM_BYTES, MAX_FORM_PARTS, TAKES_FILES
from frontend.settings import Settings, from_environment
from frontend.site import MOST_FILES, PagesSite
from tests.doors import scope_of

MOST = 2**20
SETTINGS = Settings(backend_url="http://127.0.0.1:1", max_body_bytes=MOST)
MULTIPART, URLENCODED = "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"
FILE_HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
FIELD = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
CONNECTION = "flightchain.connection"
Message = MutableMapping[str, Any]


class Asking:
    """A request at a front, and its answer. is_read: whether the front asked for the body."""

    def __init__(self, path: str, kind: str, length: int, **headers: str) -> None:
        given = {"Content-Type": kind, "Content-Length": str(length), "Origin": "http://localhost"}
        connection = SimpleNamespace(send_whole=self._send_whole)
        self._scope = scope_of("POST", path, {**given, **headers}) | {CONNECTION: connection}
        self.messages: list[Message] = []
        self.is_read = False
        self._bodies: asyncio.Queue[Message] = asyncio.Queue()

    async def ask(self, front: Front) -> None:
        """Have the front answer."""
        await front(self._scope, self._receive, self._send)

    async def _receive(self) -> Message:
        self.is_read = True
        return await self._bodies.get()

    def give(self, piece: bytes, *, more: bool = False) -> None:
        """Send a piece of the body."""
        self._bodies.put_nowait({"type": "http.request", "body": piece, "more_body": more})

    def leave(self) -> None:
        """Close the connection."""
        self._bodies.put_nowait({"type": "http.disconnect"})

    async def _send(self, message: Message) -> None:
        self.messages.append(message)

    def _send_whole(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.messages += ({"status": status, "headers": headers}, {"body": body})

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def text(self) -> str:
        return b"".join(message["body"] for message in self.messages[1:]).decode()


def run(work: Callable[[Front], Awaitable[None]], app: Flask | None = None) -> None:
    """Run `work` with a front of the pages, or of another application behind their site."""
    front = Front(PagesSite(SETTINGS, app or create_app(SETTINGS)))
    try:
        asyncio.run(asyncio.wait_for(work(front), 20))
    finally:
        front.close()


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
    async def work(front: Front) -> None:
        asking = Asking(path, kind, most + 1)
        await asking.ask(front)
        assert asking.status == 413
        assert "othing was added" in asking.text or path == "/upload.json"
        assert not asking.is_read
        allowed = Asking(path, kind, most)
        task = asyncio.create_task(allowed.ask(front))
        while not allowed.is_read:
            await asyncio.sleep(0)
        task.cancel()

    run(work)


def test_a_visitor_without_scripts_is_told_the_limit_and_what_to_do() -> None:
    async def work(front: Front) -> None:
        asking = Asking("/upload", MULTIPART, 30 * 2**20)
        await asking.ask(front)
        assert "The file is longer than 1 MB" in asking.text
        for advice in (
            "With JavaScript",
            "cut it into several files",
            "python -m backend import FILE",
        ):
            assert advice in asking.text

    run(work)


@pytest.mark.parametrize(
    "headers", [{"Content-Encoding": "gzip"}, {"Origin": "http://evil.example"}]
)
def test_what_is_refused_for_other_reasons_is_not_read_either(headers: dict[str, str]) -> None:
    async def work(front: Front) -> None:
        asking = Asking("/upload", MULTIPART, 1000, **headers)
        await asking.ask(front)
        assert asking.status in {403, 415}
        assert not asking.is_read

    run(work)


def test_every_route_that_takes_a_file_is_in_the_table_and_exists() -> None:
    posted = {
        r.rule for r in create_app(SETTINGS).url_map.iter_rules() if "POST" in (r.methods or ())
    }
    assert posted == {"/add", "/months", "/upload/<import_id>", *TAKES_FILES}


def test_only_so_many_files_are_received_at_once_and_a_place_becomes_free() -> None:
    async def work(front: Front) -> None:
        asked = [Asking("/upload", MULTIPART, MOST) for _ in range(MOST_FILES)]
        tasks = [asyncio.create_task(asking.ask(front)) for asking in asked]
        while not all(asking.is_read for asking in asked):
            await asyncio.sleep(0)
        late = Asking("/upload", MULTIPART, MOST)
        await late.ask(front)
        assert (late.status, late.is_read) == (503, False)
        assert "send it again in a few seconds" in late.text
        assert ("Retry-After", "5") in late.messages[0]["headers"]
        other = Asking("/add", URLENCODED, 3)
        other.give(b"a=1")
        await other.ask(front)
        assert "The ledger does not answer" in other.text  # it waits for no file
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        next_one = Asking("/upload", MULTIPART, 10)
        next_one.give(b"0123456789")
        await next_one.ask(front)
        assert next_one.status == 422
        for task in tasks:
            task.cancel()

    run(work)


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
    async def work(front: Front) -> None:
        asking = Asking("/upload.json", ANY_FILE, length)
        for at in range(0, length, 1000):
            piece, is_last = b"x" * min(1000, length - at), at + 1000 >= length
            asking.give(piece, more=not is_last)
        await asking.ask(front)
        assert asking.text == f'{{"length":{length},"links":{links}}}\n'

    run(work, Looking())


def test_what_a_client_has_not_sent_completely_is_not_looked_at() -> None:
    async def work(front: Front) -> None:
        for _ in range(MOST_FILES + 1):  # each gives its place back
            asking = Asking("/upload.json", ANY_FILE, MOST)
            asking.give(b"x" * (MOST - 1), more=True)
            asking.leave()
            await asking.ask(front)
            assert (asking.is_read, asking.messages) == (True, [])

    run(work)


def full_disk(*_: object) -> IO[bytes]:
    """A file on a disk without room."""
    return open("/dev/full", "w+b", buffering=0)  # noqa: PTH123


def test_a_disk_that_is_full_when_a_file_arrives_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_module, "body_file", full_disk)

    async def work(front: Front) -> None:
        asking = Asking("/upload", MULTIPART, MOST)
        asking.give(b"x" * MOST)
        await asking.ask(front)
        assert asking.status == HTTPStatus.SERVICE_UNAVAILABLE
        assert "the disk of these pages has no room" in asking.text

    run(work)


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
    for text in ("65535", str(2**30 + 1), "16 MB", "9" * 5000):
        with pytest.raises(InvalidSetting, match=name):
            from_environment({name: text})
