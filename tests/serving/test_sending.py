"""Answers as bytes of HTTP/1: how a body is framed, and what becomes of the connection."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest

from serving.sending import JOINED_BYTES, Sending

LENGTH_5 = [("Content-Length", "5")]


class Written:
    """What a connection was given to write, for a request that does not ask to close it."""

    def __init__(self, method: str = "GET", version: tuple[int, int] = (1, 1)) -> None:
        self.data = b""
        self.writes = 0
        connection = SimpleNamespace(
            _closed=False,
            _safe_write=self._write,
            _will_close=lambda request, closes: closes,
            _flow_control=SimpleNamespace(write_paused=False),
        )
        self.sending = Sending(connection, SimpleNamespace(method=method, version=version))
        self.connection = connection

    def _write(self, data: bytes) -> None:
        self.data += data
        self.writes += 1

    def answer(self, headers: list[tuple[str, str]], *pieces: bytes, status: int = 200) -> str:
        """Send an answer. Returns the lines of its head but the last two, which are always so."""
        asyncio.run(self._answer({"status": status, "headers": headers}, *pieces))
        head, _, self.body = self.data.partition(b"\r\n\r\n")
        *lines, server, date = head.decode().split("\r\n")
        assert server == "Server: gunicorn/asgi"
        assert re.fullmatch(r"Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", date)
        return "|".join(lines)

    async def _answer(self, start: dict[str, Any], *pieces: bytes) -> None:
        await self.sending.send({"type": "http.response.start", **start})
        for at, piece in enumerate(pieces, 1):
            await self.sending.send(
                {"type": "http.response.body", "body": piece, "more_body": at < len(pieces)}
            )


def test_a_small_answer_goes_out_in_one_piece() -> None:
    written = Written()
    assert written.answer(LENGTH_5, b"hello") == "HTTP/1.1 200 OK|Content-Length: 5"
    assert (written.body, written.writes, written.sending.is_kept) == (b"hello", 1, True)


def test_a_large_piece_is_not_joined_to_the_head() -> None:
    large = b"x" * (JOINED_BYTES + 1)
    written = Written()
    written.answer([("Content-Length", str(len(large)))], large)
    assert (written.body, written.writes, written.sending.is_kept) == (large, 2, True)


def test_without_a_length_there_are_chunks() -> None:
    written = Written()
    assert written.answer([], b"0123456789", b"", b"abc").endswith("|Transfer-Encoding: chunked")
    assert written.body == b"a\r\n0123456789\r\n3\r\nabc\r\n0\r\n\r\n"
    assert written.sending.is_kept


def test_http_1_0_gets_the_length_or_the_end_of_the_connection() -> None:
    with_length, without = (Written(version=(1, 0)) for _ in range(2))
    assert with_length.answer(LENGTH_5, b"hello").endswith("|Connection: keep-alive")
    assert without.answer([], b"hello") == "HTTP/1.0 200 OK|Connection: close"
    assert without.body == b"hello"
    assert (with_length.sending.is_kept, without.sending.is_kept) == (True, False)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 304), ("GET", 204)])
def test_some_answers_have_no_body(method: str, status: int) -> None:
    written = Written(method)
    written.answer(LENGTH_5 if method == "HEAD" else [], b"hello", status=status)
    assert (written.body, written.sending.is_kept) == (b"", True)


def test_a_body_is_never_longer_than_it_says() -> None:
    written = Written()
    written.answer(LENGTH_5, b"hel", b"lo, all of you")
    assert (written.body, written.sending.is_kept) == (b"hello", True)


@pytest.mark.parametrize("pieces", [[b"hell"], [b"he", b"ll"], []])
def test_a_body_that_is_too_short_ends_the_connection(pieces: list[bytes]) -> None:
    written = Written()
    written.answer(LENGTH_5, *(pieces or [b""]))
    assert not written.sending.is_kept


def test_an_answer_without_an_end_ends_the_connection() -> None:
    written = Written()
    asyncio.run(written._answer({"status": 200, "headers": []}))
    assert (written.sending.has_begun, written.sending.is_kept) == (True, False)


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "\0", "\x7f"])
def test_no_header_makes_another_one(value: str) -> None:
    written = Written()
    with pytest.raises(ValueError, match="not allowed"):
        written.answer([("Location", value), *LENGTH_5], b"hello")
    assert (written.data, written.sending.has_begun) == (b"", False)


def test_a_client_that_is_gone_gets_nothing() -> None:
    written = Written()
    written.connection._closed = True
    asyncio.run(written._answer({"status": 200, "headers": LENGTH_5}, b"hello"))
    assert (written.data, written.sending.is_kept) == (b"", False)


@pytest.mark.parametrize("status", [202, 304, 411, 413, 415, 417, 421, 422, 431, 501, 503])
def test_every_status_has_a_phrase(status: int) -> None:
    line = Written().answer(LENGTH_5, b"hello", status=status).partition("|")[0]
    assert re.fullmatch(rf"HTTP/1.1 {status} [A-Z][A-Za-z -]+", line)
