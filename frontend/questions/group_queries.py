"""Asks the backend about the same flights by several groups, all as of the same block.

Every question raises Refused and BackendAway.
"""

from collections.abc import Mapping

from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Coverage, all_days
from frontend.question import AS_OF, DAYS, Question, as_of_in

PATH = "/average_delays"
MOST_ORIGINS = 4
"""A ledger with so few airports of departure, and many more of arrival, is a region's."""

Groups = Mapping[str, Mapping[str, str]]  # group_by -> further options


def answers_by_group(question: Mapping[str, str], groups: Groups) -> Json:
    """Return the answer for each of `groups`. Without days in `question`, all are meant."""
    question = all_days(coverage.at(question.get(AS_OF))) | dict(question)
    answers: Json = {}
    for by, options in groups.items():
        answers[by] = backend.get(PATH, {**question, "group_by": by, **options})
        question["as_of"] = str(answers[by]["as_of"]["height"])
    return answers


def total(question: Mapping[str, str], height: int) -> Json:
    """Return the answer without groups, as of a block."""
    return backend.get(PATH, {**all_days(coverage.now()), **question, "as_of": str(height)})


def only_origins(known: Coverage) -> list[str]:
    """Return the airports from which all flights leave, if the ledger holds only a few of them."""
    answer = backend.get(PATH, {**all_days(known), "group_by": "origin"})
    codes = [row["ORIGIN"] for row in answer["by_origin"]]
    return codes if len(codes) <= min(MOST_ORIGINS, len(known.airports) // 2) else []


def question_of(name: str, answer: Json, given: Mapping[str, str], **subject: str) -> Question:
    """Return the question of a page from an answer. given: what was asked. subject: of the page."""
    days = {name: answer["query"][name] for name in DAYS}
    return Question(name, {**subject, **days, **as_of_in(given)})
