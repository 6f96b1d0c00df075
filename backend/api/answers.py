"""Writing answers: JSON in UTF-8, and keeping those that will be asked for again."""

from collections.abc import Hashable
from random import randrange
from threading import Lock
from typing import Any

import msgspec
from flask import Response

encode = msgspec.json.Encoder().encode
MIMETYPE = "application/json"
ENTRY_BYTES = 300  # what an entry takes besides the texts of question and answer, about

Question = tuple[type[object], str]  # what is asked for, and the query string


def answer(body: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(encode(body), status, mimetype=MIMETYPE)


class AnswerCache:
    """Encoded answers of one state of the index, the one asked for last; bounded in bytes.

    An answer at a tip never changes, and people and load tests ask the same again and again. What
    is kept is forgotten as soon as there are answers of another state. When there is too much of
    it, answers chosen at random make room: whoever goes round a few more questions than fit still
    finds most.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept = _OfState(None)  # exchanged in one step, so that no answer gets a wrong state

    def find(self, state: Hashable, question: Question) -> bytes | None:
        """The answer to `question` in this state, if it is kept."""
        kept = self._kept
        return kept.answers.get(question) if state == kept.state else None

    def keep(self, state: Hashable, question: Question, answer: bytes) -> None:
        """Keep an answer."""
        kept = self._kept
        if state != kept.state:
            kept = self._kept = _OfState(state)
        kept.add(question, answer, self._most_bytes)


class _OfState:
    """The answers in one state."""

    def __init__(self, state: Hashable) -> None:
        self.state = state
        self.answers: dict[Question, bytes] = {}
        self._questions: list[Question] = []
        self._bytes = 0
        self._changing = Lock()

    def add(self, question: Question, answer: bytes, most_bytes: int) -> None:
        size = _kept_bytes(question, answer)
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
        self._bytes -= _kept_bytes(question, self.answers.pop(question))


def _kept_bytes(question: Question, answer: bytes) -> int:
    """What keeping an answer takes in memory."""
    return len(question[1]) + len(answer) + ENTRY_BYTES
