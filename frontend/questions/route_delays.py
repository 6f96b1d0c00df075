"""Makes the page of a route from answers: its ends, carriers, hours, weekdays, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from frontend.backend_client import Json
from frontend.charts.maps import Distance, distance_between
from frontend.context import coverage
from frontend.coverage import Coverage
from frontend.question import BOTH, DAYS, ENDS, OPTIONS, Question, ends_in, require_known
from frontend.questions.group_queries import (
    WEEK,
    Groups,
    answers_by_group,
    question_of,
    total,
)
from frontend.questions.group_rows import Row, Verdict, best_and_worst, other_airports, rows_of

GROUPS: Groups = {"carrier": {"distribution": "true"}, **WEEK, "route": {}}


@dataclass(frozen=True)
class RouteDelays:
    """A route. question: of the page. answers: by each of GROUPS. back: a total."""

    known: Coverage
    question: Question
    answers: Json
    back: Json

    @property
    def total(self) -> Json:
        """The answer about all flights, with their distribution."""
        answer: Json = self.answers["carrier"]
        return answer

    @cached_property
    def names(self) -> list[str]:
        """Both ends as the page names them."""
        return [self.question.end(end, self.known) for end in BOTH]

    @property
    def cities(self) -> list[str]:
        return [self.question.city(end, self.known) for end in BOTH]

    @property
    def distance(self) -> Distance | None:
        return distance_between(*(self.question.airports(end, self.known) for end in BOTH))

    @property
    def fields(self) -> list[str]:
        """The parameters that the fields of the form stand for."""
        cities = (("ORIGIN", "ORIGIN_CITY_NAME"), ("DEST", "DEST_CITY_NAME"))
        return [city if city in self.question.values else code for code, city in cities]

    @property
    def more_airports(self) -> list[str]:
        """Other airports of the cities of which an airport is named."""
        named = filter(None, (self.question.airport(end, self.known) for end in BOTH))
        others = [other_airports(self.known, airport) for airport in named]
        return list(dict.fromkeys(other.code for airports in others for other in airports))

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        return {by: rows_of(self.answers[by], by, self.known, self.question) for by in self.answers}

    @property
    def carriers(self) -> Verdict | None:
        return best_and_worst(self.rows["carrier"])


def route_delays(given: Mapping[str, str]) -> RouteDelays:
    """Return the route that a request asks for. Raises Refused, BackendAway."""
    require_known(given, *ENDS, *DAYS)
    known = coverage.at(given.get("as_of"))
    ends = ends_in(given)
    more = {name: given[name] for name in (*DAYS, *OPTIONS) if name in given}
    answers = answers_by_group(ends | more, GROUPS)
    carriers = answers["carrier"]
    question = question_of("route", carriers, given, **ends)
    back = total({**more, **question.turned.values}, carriers["as_of"]["height"])
    return RouteDelays(known, question, answers, back)
