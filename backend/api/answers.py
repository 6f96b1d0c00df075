"""Writing answers: JSON in UTF-8, and keeping those that will be asked for again."""

from collections.abc import Hashable
from random import randrange
from threading import Lock
from typing import Any

import msgspec
from flask import Response

encode = msgspec.json.Encoder().encode
MIMETYPE = "application/json"
ENTRY_BYTES = 300  # what an entry takes besides its answer, about


def answer(body: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(encode(body), status, mimetype=MIMETYPE)


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
