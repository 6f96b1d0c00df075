"""Makes answers: writes JSON in UTF-8, and keeps answers that will be asked for again."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec
from flask import Response

from backend.api.conditions import (
    NO_STORE,
    REVALIDATE,
    VARY,
    quoted,
    tag_of_content,
    unchanged,
)
from backend.api.encodings import LEAST_BYTES, compressed, encoding_for
from backend.api.responses import Pair, Whole
from backend.base.lru import LruCache
from backend.base.once import once
from backend.index.queries import State
from backend.questions.values import Selecting
from backend.serving.environs import Environ

encode = msgspec.json.Encoder().encode
MIMETYPE = "application/json"
ENTRY_BYTES = 900  # about what an answer takes besides the texts of question and answer

# The state of the index, the kind of question, and the query string (behind an encoding, if any).
AnswerKey = tuple[State, type[Selecting], str]


def answer(body: Any, status: int = 200, *more: Pair) -> Response:
    """Return a JSON response that holds only for this moment, so that no cache may keep it.

    more: further headers.
    """
    kind, control = ("Content-Type", MIMETYPE), ("Cache-Control", NO_STORE)
    return Whole(encode(body), kind, control, *more, status=status)


def versioned(
    environ: Environ,
    body: bytes,
    cache_control: str = REVALIDATE,
    tag: str = "",
    compress: Callable[[str, bytes], bytes] = compressed,
    mimetype: str = MIMETYPE,
) -> Response:
    """Return `body` in the encoding that the client wants, or 304 if the client has it already.

    tag: as in `conditions`; by default that of the content. compress: makes the encoded body from
    an encoding and the body; it may have kept it.
    """
    tag = tag or tag_of_content(body)
    if known := unchanged(environ, tag, cache_control, is_there=True):
        return known
    encoding = encoding_for(environ) if len(body) >= LEAST_BYTES else ""
    sent = compress(encoding, body) if encoding else body
    return whole(sent, encoding, tag, cache_control, mimetype)


def made_once(make: Callable[[], bytes], mimetype: str = MIMETYPE) -> Callable[..., Response]:
    """Return a handler whose body is made, and compressed, when it is first asked for."""
    body, tag, compress = once(make), cache(tag_of_content), cache(compressed)

    def answered(environ: Environ, *_: object) -> Response:
        made = body()
        return versioned(environ, made, tag=tag(made), compress=compress, mimetype=mimetype)

    return answered


def whole(
    body: bytes, encoding: str, tag: str, cache_control: str, mimetype: str = MIMETYPE
) -> Response:
    """Return a response with `body`, which is in an encoding already; "" for none."""
    kind, control = ("Content-Type", mimetype), ("Cache-Control", cache_control)
    more: tuple[Pair, ...] = (VARY,) if encoding or len(body) >= LEAST_BYTES else ()
    if encoding:
        more = (("Content-Encoding", encoding), *more)
    return Whole(body, kind, ("ETag", quoted(tag, encoding)), control, *more)


class CachedAnswer(NamedTuple):
    """An answer as it goes out, perhaps to several clients at a time, so that nobody may change it.

    query: the query string of its question. tip_hash: hash of the block up to which it counts.
    """

    query: str
    body: bytes
    tip_hash: str
    response: Response


class AnswerCache(LruCache[AnswerKey, CachedAnswer]):
    """Keeps answers of one state of the index within `capacity_bytes`. Safe for threads.

    An answer at a tip never changes, and people and load tests ask the same again and again.
    Answers are forgotten as soon as there are answers of another state.
    """

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes, _kept_bytes)
        self._state: State | None = None

    def keep(self, key: AnswerKey, value: CachedAnswer) -> None:
        """Keep an answer; those of other states and the least recently used make room."""
        if key[0] != self._state:
            self.clear()
            self._state = key[0]
        super().keep(key, value)


def _kept_bytes(answer: CachedAnswer) -> int:
    return len(answer.query) + len(answer.body) + ENTRY_BYTES
