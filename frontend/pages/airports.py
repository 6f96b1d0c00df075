"""`/airports/CODE`: departures and arrivals of an airport."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from flask import Blueprint, abort, request

from frontend.answer_page import answer_page
from frontend.backend_client import Json
from frontend.charts.maps import RoutesMap, map_of_routes
from frontend.context import coverage
from frontend.coverage import Airport
from frontend.form_request import filled_in
from frontend.question import DAYS, Question, require_known
from frontend.questions.figures import FIGURES
from frontend.questions.group_queries import WEEK, Groups, answers_by_group, question_of
from frontend.questions.group_rows import Row, csv_rows, other_airports, rows_of
from frontend.twins import Twin, twins

ROUTES_SHOWN, ROUTES_DRAWN = 15, 60
LEAVING: Groups = {"carrier": {}, **WEEK, "destination": {}}
ARRIVING: Groups = {"origin": {}}

routes = Blueprint("airports", __name__)


@dataclass(frozen=True, slots=True)
class AirportDelays:
    """The answers about an airport by their groups. departures: the one about all departures."""

    leaving: Json
    arriving: Json
    departures: Json
    question: Question
    rows: dict[str, list[Row]]

    @property
    def map(self) -> RoutesMap | None:
        query, rows = self.departures["query"], self.rows["destination"][:ROUTES_DRAWN]
        lines = {(query["ORIGIN"], row.key["DEST"]): row for row in rows}
        return map_of_routes(coverage.now(), lines)


def _airport(code: str) -> Airport:
    """Return the airport that an address names. Aborts with 404 for an unknown one."""
    return coverage.now().airport(code.upper()) or abort(
        404, f"no airport in the ledger has the code {code[:10]}"
    )


def _delays(airport: Airport, given: Mapping[str, str]) -> AirportDelays:
    """Return what a request asks about an airport. Raises Refused, BackendAway."""
    known = coverage.now()
    require_known(given, *DAYS)
    leaving = answers_by_group({**given, "ORIGIN": airport.code}, LEAVING)
    departures = leaving["carrier"]
    as_of = {"as_of": str(departures["as_of"]["height"])}
    arriving = answers_by_group({**given, **as_of, "DEST": airport.code}, ARRIVING)
    question = question_of(f"airports/{airport.code}", departures, given)
    answers = leaving | arriving
    rows = {by: rows_of(answer, by, known, question) for by, answer in answers.items()}
    return AirportDelays(leaving, arriving, departures, question, rows)


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
    both = {"leaving": delays.leaving, "arriving": delays.arriving}
    columns = ("group_by", "name", *FIGURES)
    return Twin(both, columns, csv_rows(delays.rows), delays.departures["as_of"])
