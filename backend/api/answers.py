"""Writing answers: JSON in UTF-8, and keeping those that will be asked for again."""

from collections.abc import Callable, Hashable
from random import randrange
from threading import Lock
from typing import Any

import msgspec
from flask import Response

from backend.api.conditions import (
    NO_STORE,
    Environ,
    not_modified,
    quoted,
    unchanged,
    wants_any,
)
from backend.api.encodings import LEAST_BYTES, compressed, encoding_for
from backend.api.whole import Whole

encode = msgspec.json.Encoder().encode
MIMETYPE = "application/json"
ENTRY_BYTES = 300  # what an entry takes besides its answer, about


def answer(body: Any, status: int = 200) -> Response:
    """A JSON response that stands for this moment and may not be kept."""
    response = Whole(encode(body), status, content_type=MIMETYPE)
    response.headers["Cache-Control"] = NO_STORE
    return response


def versioned(
    environ: Environ,
    body: bytes,
    tag: str,
    cache_control: str,
    compress: Callable[[str, bytes], bytes] = compressed,
    mimetype: str = MIMETYPE,
) -> Response:
    """`body` as the client wants it: encoded, or 304 if it has it. tag: see `conditions`.

    compress: from an encoding and the body to the encoded body; may know it already.
    """
    if "HTTP_IF_NONE_MATCH" in environ:
        known = unchanged(environ, tag, cache_control)
        if known is not None:
            return known
        if wants_any(environ):
            return not_modified(tag, "", cache_control)
    if len(body) < LEAST_BYTES:
        return _whole(body, quoted(tag), cache_control, mimetype)
    encoding = encoding_for(environ)
    if encoding:
        return encoded(compress(encoding, body), encoding, tag, cache_control, mimetype)
    response = _whole(body, quoted(tag), cache_control, mimetype)
    response.headers["Vary"] = "Accept-Encoding"
    return response


def encoded(
    body: bytes, encoding: str, tag: str, cache_control: str, mimetype: str = MIMETYPE
) -> Response:
    """`body`, which is in an encoding already."""
    response = _whole(body, quoted(tag, encoding), cache_control, mimetype)
    response.headers["Content-Encoding"] = encoding
    response.headers["Vary"] = "Accept-Encoding"
    return response


def _whole(body: bytes, etag: str, cache_control: str, mimetype: str) -> Response:
    response = Whole(body, 200, content_type=mimetype)
    headers = response.headers
    headers["ETag"] = etag
    headers["Cache-Control"] = cache_control
    return response


class KeptBodies:
    """Encoded bodies of things that never change; bounded in bytes, the least used go first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bodies: dict[Hashable, bytes] = {}  # in the order of use
        self._bytes = 0
        self._changing = Lock()

    def find(self, name: Hashable) -> bytes | None:
        """The body of this name, if it is kept."""
        with self._changing:
            body = self._bodies.pop(name, None)
            if body is not None:
                self._bodies[name] = body
            return body

    def keep(self, name: Hashable, body: bytes) -> None:
        """Keep a body, and let others go for it."""
        size = len(body) + ENTRY_BYTES
        with self._changing:
            if name in self._bodies or size > self._most_bytes:
                return
            while self._bytes + size > self._most_bytes:
                oldest = next(iter(self._bodies))
                self._bytes -= len(self._bodies.pop(oldest)) + ENTRY_BYTES
            self._bodies[name] = body
            self._bytes += size


class AnswerCache:
    """Encoded answers that stand for one tip, the newest that was seen; bounded in bytes.

    An answer at a tip never changes, and people and load tests ask the same again and again. What
    is kept is forgotten as soon as another tip is asked for. When there is too much of it, answers
    chosen at random make room: whoever goes round a few more questions than fit still finds most.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept = _OfTip("")  # exchanged in one step, so that no answer gets a wrong tip

    def find(self, tip_hash: str, question: Hashable) -> bytes | None:
        """The answer to `question` at the tip with this hash, if it is kept."""
        kept = self._kept
        return kept.answers.get(question) if tip_hash == kept.tip_hash else None

    def keep(self, tip_hash: str, question: Hashable, answer: bytes) -> None:
        """Keep an answer."""
        kept = self._kept
        if tip_hash != kept.tip_hash:
            kept = self._kept = _OfTip(tip_hash)
        kept.add(question, answer, self._most_bytes)


class _OfTip:
    """The answers at one tip."""

    def __init__(self, tip_hash: str) -> None:
        self.tip_hash = tip_hash
        self.answers: dict[Hashable, bytes] = {}
        self._questions: list[Hashable] = []
        self._bytes = 0
        self._changing = Lock()

    def add(self, question: Hashable, answer: bytes, most_bytes: int) -> None:
        size = len(answer) + ENTRY_BYTES
        with self._changing:
            if question in self.answers or size > most_bytes:
                return
            while self._bytes + size > most_bytes:
                self._remove_any()
            self.answers[question] = answer
            self._questions.append(question)
            self._bytes += size

    def _remove_any(self) -> None:
        at = randrange(len(self._questions))  # noqa: S311  no secret
        question, self._questions[at] = self._questions[at], self._questions[-1]
        self._questions.pop()
        self._bytes -= len(self.answers.pop(question)) + ENTRY_BYTES
