"""`/airports/CODE`: departures and arrivals of an airport."""

from dataclasses import dataclass

from flask import Blueprint, abort, render_template, request

from frontend.backend_client import Json
from frontend.charts.maps import map_of_routes
from frontend.context import coverage
from frontend.coverage import Airport
from frontend.form_request import FormRequest, filled_in
from frontend.question import DAYS, Question, require_known
from frontend.questions.group_queries import (
    WEEK,
    Groups,
    answers_by_group,
    only_origins,
    question_of,
)
from frontend.questions.group_rows import (
    FIGURES,
    Row,
    csv_rows,
    other_airports,
    rows_of,
)
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

ROUTES_SHOWN, ROUTES_DRAWN = 15, 60
_LARGEST = {"limit": str(ROUTES_DRAWN)}  # the most flights first
LEAVING: Groups = {"carrier": {}, **WEEK, "destination": _LARGEST}
ARRIVING: Groups = {"origin": _LARGEST}

routes = Blueprint("airports", __name__)


@dataclass(frozen=True, slots=True)
class AirportDelays:
    """The answers about an airport by their groups. departures: the one about all departures."""

    airport: Airport
    leaving: Json
    arriving: Json
    departures: Json
    question: Question
    rows: dict[str, list[Row]]


def _delays(code: str) -> AirportDelays:
    """Aborts with 404 for an unknown airport. Raises Refused, BackendAway."""
    known = coverage.now()
    airport = known.airport(code.upper())
    if airport is None:
        abort(404, f"no airport in the ledger has the code {code[:10]}")
    given = filled_in(request.args)
    require_known(given, *DAYS)
    leaving = answers_by_group({**given, "ORIGIN": airport.code}, LEAVING)
    departures = leaving["carrier"]
    as_of = {"as_of": str(departures["as_of"]["height"])}
    arriving = answers_by_group({**given, **as_of, "DEST": airport.code}, ARRIVING)
    question = question_of(f"airports/{airport.code}", departures, given)
    answers = leaving | arriving
    rows = {by: rows_of(answer, by, known, question) for by, answer in answers.items()}
    return AirportDelays(airport, leaving, arriving, departures, question, rows)


@routes.get("/airports/<code>")
def page(code: str) -> str:
    delays, known = _delays(code), coverage.at(request.args.get("as_of"))
    return render_template(
        "airport.html",
        delays=delays,
        known=known,
        form_request=FormRequest(delays.question.values),
        intervals=offered(known, delays.question.values["FINAL_DATE"]),
        shown=ROUTES_SHOWN,
        map=map_of_routes(
            known,
            {(delays.airport.code, row.key["DEST"]): row for row in delays.rows["destination"]},
        ),
        others=other_airports(known, delays.airport),
        only_origins=only_origins(known),
    )


@twins(routes, "/airports/<code>")
def twin(code: str) -> Twin:
    """The backend's answers about departures and arrivals; as CSV a line for each group."""
    delays = _delays(code)
    both = {"leaving": delays.leaving, "arriving": delays.arriving}
    columns = ("group_by", "name", *FIGURES)
    return Twin(both, columns, csv_rows(delays.rows), delays.departures["as_of"])
