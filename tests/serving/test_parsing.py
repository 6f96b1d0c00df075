"""Our parser and our requests find in a head what gunicorn's find, and refuse what these refuse."""

from typing import Any

import pytest
from gunicorn.asgi.parser import CallbackRequest, ParseError, PythonProtocol
from hypothesis import given
from hypothesis import strategies as st

from serving.parsing import Parser, Request

LIMITS = {"limit_request_fields": 5, "limit_request_field_size": 40, "limit_request_line": 60}
GET = b"GET /a%20b?c=d HTTP/1.1\r\n"

FIELDS = [
    *(b"Host: a", b"HOST:\t a \t", b"X:", b"X-Y_z!: \xe9\x80", b"Cookie: a: b", b"x: y"),
    *(b"Content-Length: 3", b"content-length: 03", b"Content-Type: a", b"Upgrade: h2c"),
    *(
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: gzip,chunked",
    ),
    *(b"Connection: close", b"Connection: Keep-Alive, x", b"Expect: 100-Continue"),
    *(b"Long: " + b"x" * 32, b"Long: " + b"x" * 33, b"y" * 37 + b":", b"y" * 38 + b":"),
]
WRONG = [
    *(
        b"X : y",
        b" X: y",
        b"\tfolded",
        b"X",
        b": y",
        b"X\x00: y",
        b"X: \x00",
        b"X: a\rb",
        b"X: a\nb",
    ),
    *(b"(X): y", b"X: \x7f", b"Content-Length: +3", b"Content-Length: x", b"\r", b"\n"),
]
LINES = [
    *(b"GET / HTTP/1.1", b"HEAD /?a HTTP/1.0", b"POST /a?b?c%3f HTTP/1.1", b"M-SEARCH * HTTP/1.1"),
    *(b"OPTIONS * HTTP/1.1", b"CONNECT a:1 HTTP/1.1", b"GET http://a/b?c HTTP/1.1"),
    *(b"get / HTTP/1.1", b"G# / HTTP/1.1", b"GE / HTTP/1.1", b"GET  / HTTP/1.1", b"GET / HTTP/2"),
    *(b"A" * 20 + b" / HTTP/1.1", b"A" * 21 + b" / HTTP/1.1", b"GET /\x80 HTTP/1.1", b"GET /"),
]


def found_by(
    parser_kind: Any, request_kind: Any, data: bytes, cuts: tuple[int, ...]
) -> dict[str, Any]:
    """What a parser and the request made from it tell of a head that comes in pieces."""
    made: list[Any] = []

    def take_head() -> bool:
        made.append(request_kind.from_parser(parser))
        return False

    parser = parser_kind(on_headers_complete=take_head, **LIMITS)
    try:
        for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
            parser.feed(data[start:end])
    except ParseError as error:
        return {"error": (type(error), str(error)), "heads": len(made)}
    told = {
        name: getattr(parser, name)
        for name in ("headers", "content_length", "is_chunked", "is_complete", "_header_count")
    }
    return told | {"rest": bytes(parser._buffer), "requests": list(map(told_by, made))}


def told_by(request: Any) -> tuple[Any, ...]:
    """All of a request that the connection asks for."""
    names = ("method", "raw_path", "version", "headers_bytes", "scheme", "content_length")
    query = request.query if isinstance(request, Request) else request.query.encode("latin-1")
    return (
        *(getattr(request, name) for name in names),
        query,
        *(request.chunked, request._expect_100_continue, request.should_close()),
        *(request.may_upgrade(), request.headers),
    )


def assert_same(data: bytes, *cuts: int) -> None:
    ours = found_by(Parser, Request, data, cuts)
    assert ours == found_by(PythonProtocol, CallbackRequest, data, cuts)


def head(*lines: bytes) -> bytes:
    return b"".join(line + b"\r\n" for line in (*lines, b""))


@pytest.mark.parametrize("line", LINES)
def test_every_first_line_is_taken_or_refused_alike(line: bytes) -> None:
    assert_same(head(line, b"Host: a"))
    assert_same(head(line))


@pytest.mark.parametrize("field", [*FIELDS, *WRONG])
def test_every_field_is_taken_or_refused_alike_alone_and_among_others(field: bytes) -> None:
    for lines in ([field], [b"A: b", field], [field, b"A: b"], [field, field]):
        assert_same(GET + head(*lines) + b"abcGET")


@given(
    st.lists(st.sampled_from([*FIELDS, *WRONG]) | st.binary(max_size=45), max_size=7),
    st.lists(st.integers(0, 200), max_size=3),
)
def test_heads_in_pieces_are_taken_or_refused_alike(lines: list[bytes], places: list[int]) -> None:
    data = GET + head(*lines)
    assert_same(data, *sorted(min(place, len(data)) for place in places))


def test_a_message_cut_anywhere_is_found_alike() -> None:
    chunked = (
        GET + head(b"A: b", b"Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\nX: y\r\n\r\nGET"
    )
    for cut in range(len(chunked) + 1):
        assert_same(chunked, cut)
