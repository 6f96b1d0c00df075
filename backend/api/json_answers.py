"""Makes answers: writes JSON in UTF-8, and keeps answers that will be asked for again."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import randrange
from threading import Lock
from typing import Any, NamedTuple

import msgspec
from flask import Response

from backend.api.conditions import (
    NO_STORE,
    VARY,
    not_modified,
    quoted,
    unchanged,
    wants_any,
)
from backend.api.encodings import LEAST_BYTES, compressed, encoding_for
from backend.api.responses import Pair, Whole
from backend.base.lru import LruCache
from backend.serving.environs import Environ

encode = msgspec.json.Encoder().encode
MIMETYPE = "application/json"
ENTRY_BYTES = 900  # about what an answer takes besides the texts of question and answer
BODY_ENTRY_BYTES = 300  # the same of a body alone

Question = tuple[type[object], str]  # the kind of question, and the query string


def answer(body: Any, status: int = 200, *more: Pair) -> Response:
    """Return a JSON response that holds only for this moment, so that no cache may keep it.

    more: further headers.
    """
    kind, control = ("Content-Type", MIMETYPE), ("Cache-Control", NO_STORE)
    return Whole(encode(body), kind, control, *more, status=status)


def versioned(
    environ: Environ,
    body: bytes,
    tag: str,
    cache_control: str,
    compress: Callable[[str, bytes], bytes] = compressed,
    mimetype: str = MIMETYPE,
) -> Response:
    """`body` in the encoding that the client wants, or 304 if the client has it already.

    tag: as in `conditions`. compress: makes the encoded body from an encoding and the body; it may
    have kept it.
    """
    if "HTTP_IF_NONE_MATCH" in environ:
        known = unchanged(environ, tag, cache_control)
        if known is not None:
            return known
        if wants_any(environ):
            return not_modified(tag, "", cache_control)
    encoding = encoding_for(environ) if len(body) >= LEAST_BYTES else ""
    if encoding:
        return encoded(compress(encoding, body), encoding, tag, cache_control, mimetype)
    return plain(body, tag, cache_control, mimetype)


def plain(body: bytes, tag: str, cache_control: str, mimetype: str = MIMETYPE) -> Response:
    """Return a response with `body` as it is."""
    more = () if len(body) < LEAST_BYTES else (VARY,)
    return _whole(body, quoted(tag), cache_control, mimetype, *more)


def encoded(
    body: bytes, encoding: str, tag: str, cache_control: str, mimetype: str = MIMETYPE
) -> Response:
    """Return a response with `body`, which is in an encoding already."""
    more = (("Content-Encoding", encoding), VARY)
    return _whole(body, quoted(tag, encoding), cache_control, mimetype, *more)


def _whole(body: bytes, etag: str, cache_control: str, mimetype: str, *more: Pair) -> Response:
    kind, control = ("Content-Type", mimetype), ("Cache-Control", cache_control)
    return Whole(body, kind, ("ETag", etag), control, *more)


class BodyCache(LruCache[Hashable, bytes]):
    """Encoded bodies of things that never change, within `capacity_bytes`. Safe for threads."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes, lambda body: len(body) + BODY_ENTRY_BYTES)


@dataclass(frozen=True, slots=True)
class AnswerStatistics:
    """Counts since the process started. answers, bytes: what is kept now."""

    hits: int
    misses: int
    evictions: int
    answers: int
    bytes: int


class CachedAnswer(NamedTuple):
    """An answer as it goes out, perhaps to several clients at a time, so that nobody may change it.

    tip_hash: hash of the block up to which it counts.
    """

    body: bytes
    tip_hash: str
    response: Response


class AnswerCache:
    """Keeps answers of one state of the index, the latest asked for; bounded in bytes.

    An answer at a tip never changes, and people and load tests ask the same again and again.
    Answers are forgotten as soon as there are answers of another state. When they take too much
    memory, answers chosen at random make room: a client that goes round a few more questions than
    fit still finds most of them.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept = _StateAnswers(
            None
        )  # exchanged in one step, so that no answer gets a wrong state
        self._counting = Lock()
        self._hits = self._misses = self._evictions = 0

    def find(self, state: Hashable, question: Question) -> CachedAnswer | None:
        """Return the answer to `question` in this state, if it is kept."""
        current = self._kept
        answer = current.answers.get(question) if state == current.state else None
        with self._counting:
            if answer is None:
                self._misses += 1
            else:
                self._hits += 1
        return answer

    def keep(self, state: Hashable, question: Question, answer: CachedAnswer) -> None:
        """Keep an answer, if it is not too large."""
        current = self._kept
        if state != current.state:
            current = self._kept = _StateAnswers(state)
        evicted = current.add(question, answer, self.most_bytes)
        with self._counting:
            self._evictions += evicted

    def statistics(self) -> AnswerStatistics:
        """Return the counts as they are now."""
        current = self._kept
        with self._counting:
            counts = (self._hits, self._misses, self._evictions)
        return AnswerStatistics(*counts, len(current.answers), current.bytes)


class _StateAnswers:
    """The answers in one state."""

    def __init__(self, state: Hashable) -> None:
        self.state = state
        self.answers: dict[Question, CachedAnswer] = {}
        self._questions: list[Question] = []
        self.bytes = 0
        self._changing = Lock()

    def add(self, question: Question, answer: CachedAnswer, most_bytes: int) -> int:
        """Keep an answer. Returns how many others had to make room for it."""
        size = _kept_bytes(question, answer)
        with self._changing:
            if question in self.answers or size > most_bytes:
                return 0
            before = len(self.answers)
            while self.bytes + size > most_bytes:
                self._remove_any()
            evicted = before - len(self.answers)
            self.answers[question] = answer
            self._questions.append(question)
            self.bytes += size
            return evicted

    def _remove_any(self) -> None:
        at = randrange(len(self._questions))  # noqa: S311  no secret
        question, self._questions[at] = self._questions[at], self._questions[-1]
        self._questions.pop()
        self.bytes -= _kept_bytes(question, self.answers.pop(question))


def _kept_bytes(question: Question, answer: CachedAnswer) -> int:
    """Return what keeping an answer takes in memory."""
    return len(question[1]) + len(answer.body) + ENTRY_BYTES
