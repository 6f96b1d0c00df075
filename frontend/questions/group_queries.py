"""Asks the backend for several breakdowns of the same flights, all as of the same block."""

from collections.abc import Collection, Mapping

from frontend.backend_client import Backend, Json
from frontend.coverage import Coverage, CoverageKeeper, all_days
from frontend.errors import Refused

PATH = "/average_delays"
DAYS = ("INITIAL_DATE", "FINAL_DATE")
OPTIONS = ("as_of", "engine")
MOST_ORIGINS = 4
"""A ledger with so few airports of departure, and many more of arrival, is a region's."""

Groups = Mapping[str, Mapping[str, str]]  # group_by -> further options


class Breakdowns:
    """Asks `backend`. Every method raises Refused and BackendAway."""

    def __init__(self, backend: Backend, keeper: CoverageKeeper) -> None:
        self._backend, self._keeper = backend, keeper

    def by(self, question: Mapping[str, str], groups: Groups) -> Json:
        """The answer for each of `groups`. Without days in `question`, all are meant."""
        question = all_days(self._keeper.now()) | dict(question)
        found: Json = {}
        for by, options in groups.items():
            found[by] = self._backend.get(PATH, {**question, "group_by": by, **options})
            question["as_of"] = str(found[by]["as_of"]["height"])
        return found

    def total(self, question: Mapping[str, str], height: int) -> Json:
        """The answer without groups, as of a block."""
        question = all_days(self._keeper.now()) | dict(question)
        return self._backend.get(PATH, {**question, "as_of": str(height)})

    def only_origins(self, known: Coverage) -> list[str]:
        """The airports from which all flights leave, if the ledger holds only a few of them."""
        answer = self._backend.get(PATH, {**all_days(known), "group_by": "origin"})
        codes = [one["ORIGIN"] for one in answer["by_origin"]]
        return codes if len(codes) <= min(MOST_ORIGINS, len(known.airports) // 2) else []


def require_known(given: Mapping[str, str], names: Collection[str]) -> None:
    """Raise Refused for a parameter that is neither among `names` nor about days, nor an option."""
    for name in given:
        if name not in {*names, *DAYS, *OPTIONS}:
            raise Refused({"field": name, "detail": f"unknown parameter {name}"}, 400, None)


def asked_like(given: Mapping[str, str]) -> dict[str, str]:
    """The days and options of a request, for another question of the same page."""
    return {name: given[name] for name in (*DAYS, *OPTIONS) if name in given}


def interval_of(answer: Json) -> dict[str, str]:
    """The days of an answer."""
    return {name: answer["query"][name] for name in DAYS}
