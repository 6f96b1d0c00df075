"""`/airports/CODE`: departures and arrivals of an airport."""

from collections.abc import Mapping
from functools import partial

from flask import Blueprint, abort, request

from frontend.charts.maps import RoutesMap, map_of_routes
from frontend.context import coverage
from frontend.coverage import Airport
from frontend.form_request import answer_page, filled_in
from frontend.question import AS_OF, DAYS, Question, require_known
from frontend.questions.group_queries import WEEK, Groups, answers_by_group
from frontend.questions.group_rows import GROUP_COLUMNS, Grouped, csv_rows, other_airports
from frontend.twins import Twin, twins

ROUTES_SHOWN, ROUTES_DRAWN = 15, 60
LEAVING: Groups = {"carrier": {}, **WEEK, "destination": {}}
ARRIVING: Groups = {"origin": {}}

routes = Blueprint("airports", __name__)


class AirportDelays(Grouped):
    """An airport. answers: by each of LEAVING and ARRIVING. total: of all departures."""

    @property
    def map(self) -> RoutesMap | None:
        query, rows = self.total["query"], self.rows["destination"][:ROUTES_DRAWN]
        lines = {(query["ORIGIN"], row.key["DEST"]): row for row in rows}
        return map_of_routes(self.known, lines)


def _airport(code: str) -> Airport:
    """Return the airport that an address names. Aborts with 404 for an unknown one."""
    return coverage.now().airport(code.upper()) or abort(
        404, f"no airport in the ledger has the code {code[:10]}"
    )


def _delays(airport: Airport, given: Mapping[str, str]) -> AirportDelays:
    """Return what a request asks about an airport. Raises Refused, BackendAway."""
    require_known(given, *DAYS)
    answers = answers_by_group({**given, "ORIGIN": airport.code}, LEAVING)
    departures = answers["carrier"]
    as_of = {"as_of": str(departures["as_of"]["height"])}
    answers |= answers_by_group({**given, **as_of, "DEST": airport.code}, ARRIVING)
    question = Question.of(f"airports/{airport.code}", departures, given, *DAYS)
    return AirportDelays(coverage.at(given.get(AS_OF)), question, answers)


@routes.get("/airports/<code>")
def page(code: str) -> tuple[str, int]:
    airport = _airport(code)
    return answer_page(
        "airport.html",
        partial(_delays, airport),
        may_be_empty=True,
        airport=airport,
        shown=ROUTES_SHOWN,
        others=other_airports(coverage.now(), airport),
    )


@twins(routes, "/airports/<code>")
def twin(code: str) -> Twin:
    """Return the backend's answers about departures and arrivals; as CSV a line for each group."""
    delays = _delays(_airport(code), filled_in(request.args))
    directions = {"leaving": LEAVING, "arriving": ARRIVING}
    both = {
        direction: {by: answer for by, answer in delays.answers.items() if by in groups}
        for direction, groups in directions.items()
    }
    return Twin(both, GROUP_COLUMNS, csv_rows(delays.rows), delays.total["as_of"])
