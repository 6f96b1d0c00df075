"""`/route`: how late a route between two airports or cities is, and the way back."""

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Blueprint, request

from frontend.backend_client import Json
from frontend.charts.maps import Distance, distance_between
from frontend.context import coverage
from frontend.coverage import all_days
from frontend.form_request import answer_page, filled_in
from frontend.question import BOTH, DAYS, ENDS, OPTIONS, Question, ends_in, require_known
from frontend.questions.group_queries import WEEK, Groups, answer_as_of, answers_by_group
from frontend.questions.group_rows import GROUP_COLUMNS, Grouped, csv_rows, other_airports
from frontend.twins import Twin, twins

GROUPS: Groups = {"carrier": {"distribution": "true"}, **WEEK, "route": {}}

routes = Blueprint("route", __name__)


@dataclass(frozen=True)
class RouteDelays(Grouped):
    """A route. question: of the page. answers: by each of GROUPS. back: a total."""

    back: Json

    @property
    def distance(self) -> Distance | None:
        return distance_between(*(self.question.airports(end, self.known) for end in BOTH))

    @property
    def more_airports(self) -> list[str]:
        """Other airports of the cities of which an airport is named."""
        named = filter(None, (self.question.airport(end, self.known) for end in BOTH))
        others = [other_airports(self.known, airport) for airport in named]
        return list(dict.fromkeys(other.code for airports in others for other in airports))


def route_delays(given: Mapping[str, str]) -> RouteDelays:
    """Return the route that a request asks for. Raises Refused, BackendAway."""
    require_known(given, *ENDS, *DAYS)
    known = coverage.at(given.get("as_of"))
    ends = ends_in(given)
    more = {name: given[name] for name in (*DAYS, *OPTIONS) if name in given}
    answers = answers_by_group(ends | more, GROUPS)
    carriers = answers["carrier"]
    question = Question.of("route", carriers, given, *ENDS, *DAYS)
    turned = {**all_days(coverage.now()), **more, **question.turned.values}
    back = answer_as_of(turned, carriers["as_of"]["height"])
    return RouteDelays(known, question, answers, back)


@routes.get("/route")
def page() -> tuple[str, int]:
    return answer_page("route.html", route_delays)


@twins(routes, "/route")
def twin() -> Twin:
    """Return the backend's answers, and that about the way back; as CSV a line for each group."""
    route = route_delays(filled_in(request.args))
    answers = {**route.answers, "back": route.back}
    return Twin(answers, GROUP_COLUMNS, csv_rows(route.rows), route.total["as_of"])
