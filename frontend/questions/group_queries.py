"""Asks the backend about the same flights by several groups, all as of the same block.

Every question raises Refused and BackendAway.
"""

from collections.abc import Mapping

from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.coverage import Coverage, all_days
from frontend.errors import Refused
from frontend.question import AS_OF, DAY, DAYS, ENDS
from frontend.questions.group_rows import KEYS

PATH = "/average_delays"
MOST_ORIGINS = 4
"""A ledger with so few airports of departure, and many more of arrival, is a region's."""

MOST_COUNTED = 300_000
"""Flights of a place by hour of the week are counted one by one, so many in half a second."""

Groups = Mapping[str, Mapping[str, str]]  # group_by -> further options
WEEK: Groups = {"hour": {}, "weekday": {}, "month": {}, "weekday_hour": {"distribution": "true"}}


def answer_as_of(question: Mapping[str, str], height: int | None, path: str = PATH) -> Json:
    """Return an answer, up to a block if one is named.

    It is asked for without naming the block first: the service keeps answers up to the newest.
    """
    answer = backend.get(path, question)
    if height is None or answer[AS_OF]["height"] == height:
        return answer
    return backend.get(path, {**question, AS_OF: str(height)})


def flights_of_number(question: Mapping[str, str], height: int | None = None) -> Json:
    """Return the flights of a number in an interval, whose first day is FL_DATE at the service."""
    asked = {DAY if name == DAYS[0] else name: value for name, value in question.items()}
    try:
        return answer_as_of(asked, height, "/filter_transactions")
    except Refused as error:
        if error.field != DAY:
            raise
        detail = error.detail.replace(DAY, DAYS[0], 1)
        problem = {"field": DAYS[0], "value": error.value, "detail": detail}
        raise Refused(problem, error.status) from error


def answers_by_group(question: Mapping[str, str], groups: Groups) -> Json:
    """Return the answer for each of `groups`. Without days in `question`, all are meant.

    That by hour of the week is left out for a place with more than MOST_COUNTED flights.
    """
    question = all_days(coverage.at(question.get(AS_OF))) | dict(question)
    answers: Json = {}
    flights, height = 0, None
    for by, options in groups.items():
        if by == "weekday_hour" and flights > MOST_COUNTED and ENDS.keys() & question.keys():
            continue
        answers[by] = answer_as_of({**question, "group_by": by, **options}, height)
        flights, height = answers[by]["flights"], answers[by][AS_OF]["height"]
    return answers


def only_origins(known: Coverage) -> list[str]:
    """Return the airports from which all flights leave, if the ledger holds only a few of them."""
    answer = backend.get(PATH, {**all_days(known), "group_by": "origin"})
    codes = [row["ORIGIN"] for row in answer["by_origin"]]
    return codes if len(codes) <= min(MOST_ORIGINS, len(known.airports) // 2) else []


def periods_with_flights(first: str, last: str, unit: str, height: int) -> set[str]:
    """Return the days, months or years (ISO) of an interval in which the ledger has any flights.

    height: of the last block that counts.
    """
    question = {**dict(zip(DAYS, (first, last), strict=True)), "group_by": unit}
    answer = answer_as_of(question, height, "/flight_counter")
    (key,) = KEYS[unit]
    return {str(row[key]) for row in answer[f"by_{unit}"]}
