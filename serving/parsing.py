"""Parses the heads of requests as gunicorn does, those of browsers in a third of its time.

gunicorn looks at each byte of a head in a loop, and checks twice what must not come twice. `Parser`
and `Request` give the same results and raise the same errors, which `tests/serving/test_parsing.py`
compares for whole heads, heads in pieces and wrong ones. Whatever is wrong with a head is left for
gunicorn's own code to find and to name.
"""

import re
from typing import Any, Self

from gunicorn.asgi import parser, protocol

_TOKEN_BYTES = rb"!#$%&'*+\-.^_`|~0-9A-Za-z"  # RFC 9110 section 5.6.2
_NOT_IN_VALUE = rb"\x00-\x08\x0a-\x1f\x7f"  # RFC 9110 section 5.5
_TOKEN = re.compile(rb"[%b]+" % _TOKEN_BYTES)
_INVALID_IN_VALUE = re.compile(rb"[%b]" % _NOT_IN_VALUE)
_METHOD = re.compile(rb"[!$%&'*+\-.^_`|~0-9A-Z]{3,20}")  # a token without small letters and #
_FIELD = rb"([%b]+):([^%b]*)\r\n" % (_TOKEN_BYTES, _NOT_IN_VALUE)
_EACH_FIELD = re.compile(_FIELD)
_FIELDS = re.compile(rb"(?:%b)+\r\n" % _FIELD.replace(b"(", b"(?:"))
_END = b"\r\n\r\n"


_PythonProtocol: Any = parser.PythonProtocol  # whose types lack most of what is used here
_CallbackRequest: Any = parser.CallbackRequest


class Parser(_PythonProtocol):  # type: ignore[misc]
    """gunicorn's parser, with regular expressions in place of loops over each byte."""

    def _is_valid_method(self, method: bytes) -> bool:
        return _METHOD.fullmatch(method) is not None

    def _is_valid_token(self, data: bytes) -> bool:
        return _TOKEN.fullmatch(data) is not None

    def _has_invalid_header_chars(self, value: bytes) -> bool:
        return _INVALID_IN_VALUE.search(value) is not None

    def _parse_headers(self) -> bool:
        """Take all fields at once if the rest of a head is here; else line by line, as gunicorn."""
        fields = _FIELDS.match(self._buffer) if _END in self._buffer else None
        if fields is not None:
            found = _EACH_FIELD.findall(self._buffer, 0, fields.end())
            if self._are_allowed(found):
                del self._buffer[: fields.end()]
                self._scan_from = 0
                self._header_count += len(found)
                self._headers_list += [(name.lower(), v.strip(b" \t")) for name, v in found]
                self._finalize_headers()
                return True
        ended: bool = super()._parse_headers()
        return ended

    def _are_allowed(self, fields: list[tuple[bytes, bytes]]) -> bool:
        """Whether there are not too many fields, and none is too large."""
        most_bytes = self._limit_request_field_size - len(b":\r\n")
        has_room: bool = self._header_count + len(fields) <= self._limit_request_fields
        return has_room and all(len(name) + len(value) <= most_bytes for name, value in fields)


class Request(_CallbackRequest):  # type: ignore[misc]
    """The head of a request, as a parser has found and checked it."""

    __slots__ = ()

    @classmethod
    def from_parser(cls, parsed: Any, is_ssl: bool = False) -> Self:
        """The head in `parsed`. Path and query stay bytes, as the front reads them."""
        first = dict(reversed(parsed.headers))  # of each name its first value
        connection = first.get(b"connection")
        request = cls()
        request.method = parsed.method.decode("ascii")
        request.raw_path, _, request.query = parsed.path.partition(b"?")
        request.version = parsed.http_version
        request.headers_bytes, request._headers = parsed.headers, None
        request._connection = None if connection is None else connection.decode("latin-1")
        request._has_upgrade = b"upgrade" in first
        request._expect_100_continue = (
            request.version >= (1, 1) and first.get(b"expect", b"").lower() == b"100-continue"
        )
        request.scheme = "https" if is_ssl else "http"
        request.content_length = parsed.content_length or 0
        request.chunked = parsed.is_chunked
        request.must_close = not parsed.should_keep_alive
        return request


def use_quick_parser() -> None:
    """Let gunicorn make a `Parser` for each connection, and a `Request` of each head."""
    vars(protocol).update(PythonProtocol=Parser, CallbackRequest=Request)
