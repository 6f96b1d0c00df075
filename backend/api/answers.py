"""Writing answers: JSON in UTF-8, and keeping those that will be asked for again."""

from collections.abc import Hashable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class AnswerStatistics:
    """Counts since the process started; answers and bytes are what is kept now."""

    hits: int
    misses: int
    evictions: int
    answers: int
    bytes: int


class AnswerCache:
    """Encoded answers that stand for one tip, the newest that was seen; bounded in bytes.

    An answer at a tip never changes, and people and load tests ask the same again and again. What
    is kept is forgotten as soon as another tip is asked for. When there is too much of it, answers
    chosen at random make room: whoever goes round a few more questions than fit still finds most.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept = _OfTip("")  # exchanged in one step, so that no answer gets a wrong tip
        self._counting = Lock()
        self._hits = self._misses = self._evictions = 0

    def find(self, tip_hash: str, question: Hashable) -> bytes | None:
        """The answer to `question` at the tip with this hash, if it is kept."""
        kept = self._kept
        found = kept.answers.get(question) if tip_hash == kept.tip_hash else None
        with self._counting:
            if found is None:
                self._misses += 1
            else:
                self._hits += 1
        return found

    def keep(self, tip_hash: str, question: Hashable, answer: bytes) -> None:
        """Keep an answer."""
        kept = self._kept
        if tip_hash != kept.tip_hash:
            kept = self._kept = _OfTip(tip_hash)
        evicted = kept.add(question, answer, self._most_bytes)
        with self._counting:
            self._evictions += evicted

    def statistics(self) -> AnswerStatistics:
        """The counts as they are now."""
        kept = self._kept
        with self._counting:
            counts = (self._hits, self._misses, self._evictions)
        return AnswerStatistics(*counts, len(kept.answers), kept.bytes)


class _OfTip:
    """The answers at one tip."""

    def __init__(self, tip_hash: str) -> None:
        self.tip_hash = tip_hash
        self.answers: dict[Hashable, bytes] = {}
        self._questions: list[Hashable] = []
        self.bytes = 0
        self._changing = Lock()

    def add(self, question: Hashable, answer: bytes, most_bytes: int) -> int:
        """Keep an answer; how many had to make room for it."""
        size = len(answer) + ENTRY_BYTES
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
        self.bytes -= len(self.answers.pop(question)) + ENTRY_BYTES
