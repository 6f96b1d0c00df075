"""Says how what a page shows is proved and cited.

The service proves of an answer what `KINDS` says. A citation is the address of a question with
three more parameters: `as_of`, the height of the block up to which it was answered, `tip_hash`,
that block's hash, and `digest`, of what can be proved of the answers. Whoever opens it reads
whether all three are still the same.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

from frontend.backend_client import Json
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.question import AS_OF, KINDS, Question

Answer = TypeVar("Answer")

TIP_HASH, DIGEST = "tip_hash", "digest"
DIGEST_DIGITS = 16
FORMS = {
    AS_OF: (r"[0-9]{1,15}", "must be the height of a block"),
    TIP_HASH: (r"[0-9a-f]{64}", "must be the hash of a block, 64 hexadecimal digits"),
    DIGEST: (r"[0-9a-f]{16}", "must be 16 hexadecimal digits"),
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A question of the service, one of `KINDS`, and its answer."""

    question: Question
    answer: Json

    @property
    def proved(self) -> Json:
        """What is proved of such an answer, if the question is provable."""
        return {name: self.answer[name] for name in KINDS[self.question.name].proved}

    @property
    def asked(self) -> Json:
        """The question as the proof has it: without a block."""
        values = self.question.values.items()
        return {"name": self.question.name} | {name: v for name, v in values if name != AS_OF}

    @property
    def height(self) -> int:
        return int(self.answer[AS_OF]["height"])

    @property
    def proof(self) -> str:
        """The address of the proof; "" if the service has none for such questions."""
        path = f"{self.question.name}/proof"
        is_provable = self.question.is_provable
        return self.question.elsewhere(path, **{AS_OF: self.height}) if is_provable else ""

    @property
    def if_provable(self) -> str:
        """What the service proves instead, in words."""
        return KINDS[self.question.name].if_provable


@dataclass(frozen=True)
class Answered:
    """Holds what a page shows of the answer to its question. known: the coverage meanwhile."""

    known: Coverage
    question: Question
    answer: Json

    @property
    def evidence(self) -> list[Evidence]:
        return [Evidence(self.question, self.answer)]


def digest(answers: Sequence[Evidence]) -> str:
    """Return the first digits of the SHA-256 of what can be proved, as JSON with sorted names."""
    proved = [answer.proved for answer in answers]
    text = json.dumps(proved, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def address_to_cite(question: Question, answers: Sequence[Evidence]) -> str:
    """Return the address that cites these answers to the question of a page."""
    tip_hash = answers[0].answer[AS_OF][TIP_HASH]
    cited = {AS_OF: answers[0].height, TIP_HASH: tip_hash, DIGEST: digest(answers)}
    return f"{question.address(**{AS_OF: None})}&{urlencode(cited)}"


# --- citations that are opened ----------------------------------------------------------------


class Verdict(NamedTuple):
    """Says whether what was cited is still the same. height: of the block up to which it counted.

    is_missing: whether the ledger does not have that block.
    """

    height: int
    is_missing: bool
    is_same_chain: bool
    is_same_answer: bool


def uncited(values: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form without what only a citation has."""
    return {name: text for name, text in values.items() if name not in {TIP_HASH, DIGEST}}


class Citation:
    """Says what an address cites, if it does: `values` are its parameters."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._cited = {name: values[name].lower() for name in FORMS if values.get(name)}
        self._is_citation = bool({TIP_HASH, DIGEST} & self._cited.keys())
        self._is_missing = False

    def or_newest(
        self, ask: Callable[[dict[str, str]], Answer]
    ) -> Callable[[dict[str, str]], Answer]:
        """Return `ask`, which asks about the newest block if the cited one is not there.

        Raises Refused for a citation that is none.
        """

        def ask_again(given: dict[str, str]) -> Answer:
            if not self._is_citation:
                return ask(given)
            self._require_form()
            try:
                return ask(given)
            except Refused as error:
                if error.status != 404:
                    raise
            answer = ask({name: text for name, text in given.items() if name != AS_OF})
            self._is_missing = True
            return answer

        return ask_again

    def _require_form(self) -> None:
        for name, (form, reason) in FORMS.items():
            text = self._cited.get(name, "")
            if re.fullmatch(form, text) is None:
                detail = f"the citation's {name} {text!r} {reason}"
                raise Refused({"detail": detail, "field": name, "value": text}, 400)

    def verdict(self, answers: Sequence[Evidence]) -> Verdict | None:
        """Return whether what is cited is still the same; None if nothing is cited."""
        if not self._is_citation or not answers:
            return None
        return Verdict(
            int(self._cited[AS_OF]),
            is_missing=self._is_missing,
            is_same_chain=answers[0].answer[AS_OF][TIP_HASH] == self._cited[TIP_HASH],
            is_same_answer=digest(answers) == self._cited[DIGEST],
        )
