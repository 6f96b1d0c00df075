"""Makes the page of a route from answers: its ends, carriers, hours, weekdays, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from frontend.backend_client import Json
from frontend.charts.maps import Distance, distance_between
from frontend.context import coverage
from frontend.coverage import Coverage, all_days
from frontend.question import BOTH, DAYS, ENDS, OPTIONS, Question, ends_in, require_known
from frontend.questions.group_queries import (
    WEEK,
    Groups,
    answer_as_of,
    answers_by_group,
    question_of,
)
from frontend.questions.group_rows import Row, other_airports, rows_of

GROUPS: Groups = {"carrier": {"distribution": "true"}, **WEEK, "route": {}}


@dataclass(frozen=True)
class RouteDelays:
    """A route. question: of the page. answers: by each of GROUPS. back: a total."""

    known: Coverage
    question: Question
    answers: Json
    back: Json

    @property
    def total(self) -> Any:
        """The answer about all flights, with their distribution."""
        return self.answers["carrier"]

    @property
    def distance(self) -> Distance | None:
        return distance_between(*(self.question.airports(end, self.known) for end in BOTH))

    @property
    def more_airports(self) -> list[str]:
        """Other airports of the cities of which an airport is named."""
        named = filter(None, (self.question.airport(end, self.known) for end in BOTH))
        others = [other_airports(self.known, airport) for airport in named]
        return list(dict.fromkeys(other.code for airports in others for other in airports))

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        return {by: rows_of(self.answers[by], by, self.known, self.question) for by in self.answers}


def route_delays(given: Mapping[str, str]) -> RouteDelays:
    """Return the route that a request asks for. Raises Refused, BackendAway."""
    require_known(given, *ENDS, *DAYS)
    known = coverage.at(given.get("as_of"))
    ends = ends_in(given)
    more = {name: given[name] for name in (*DAYS, *OPTIONS) if name in given}
    answers = answers_by_group(ends | more, GROUPS)
    carriers = answers["carrier"]
    question = question_of("route", carriers, given, **ends)
    turned = {**all_days(coverage.now()), **more, **question.turned.values}
    back = answer_as_of(turned, carriers["as_of"]["height"])
    return RouteDelays(known, question, answers, back)
