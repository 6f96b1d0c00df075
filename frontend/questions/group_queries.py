"""Asks the backend about the same flights by several groups, all as of the same block.

Every question raises Refused and BackendAway.
"""

from collections.abc import Collection, Mapping

from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Coverage, all_days
from frontend.errors import Refused

PATH = "/average_delays"
DAYS = ("INITIAL_DATE", "FINAL_DATE")
OPTIONS = ("as_of", "engine")
MOST_ORIGINS = 4
"""A ledger with so few airports of departure, and many more of arrival, is a region's."""

Groups = Mapping[str, Mapping[str, str]]  # group_by -> further options


def answers_by_group(question: Mapping[str, str], groups: Groups) -> Json:
    """Return the answer for each of `groups`. Without days in `question`, all are meant."""
    question = all_days(coverage.now()) | dict(question)
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


def require_known(given: Mapping[str, str], names: Collection[str]) -> None:
    """Raise Refused for a parameter that is neither among `names` nor about days, nor an option."""
    for name in given:
        if name not in {*names, *DAYS, *OPTIONS}:
            raise Refused({"field": name, "detail": f"unknown parameter {name}"}, 400)


def interval_of(answer: Json) -> dict[str, str]:
    return {name: answer["query"][name] for name in DAYS}
