"""`/airports/CODE`: departures and arrivals of an airport."""

from dataclasses import dataclass

from flask import Blueprint, abort, render_template, request

from frontend.backend_client import Backend, Json
from frontend.coverage import Airport, CoverageKeeper
from frontend.form_request import FormRequest, filled_in
from frontend.questions.delays import FEW_ARRIVALS
from frontend.questions.group_queries import Breakdowns, Groups, interval_of, require_known
from frontend.questions.group_rows import FIGURES, Row, extremes, lines_of, other_airports, rows_of
from frontend.questions.intervals import offered
from frontend.twins import Twin, twins

ROUTES_SHOWN = 15
_LARGEST = {"limit": str(ROUTES_SHOWN)}  # the most flights first
LEAVING: Groups = {"carrier": {}, "hour": {}, "weekday": {}, "destination": _LARGEST}
ARRIVING: Groups = {"origin": _LARGEST}


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of an airport. leaving, arriving: the answers by their groups."""

    airport: Airport
    leaving: Json
    arriving: Json
    rows: dict[str, list[Row]]

    @property
    def departures(self) -> Json:
        """The answer about all departures."""
        answer: Json = self.leaving["carrier"]
        return answer

    @property
    def interval(self) -> dict[str, str]:
        """The days."""
        return interval_of(self.departures)


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/airports/CODE` and its twins."""
    routes = Blueprint("airports", __name__)
    breakdowns = Breakdowns(backend, keeper)

    def found(code: str) -> Found:
        """Aborts with 404 for an unknown airport. Raises Refused, BackendAway."""
        known = keeper.now()
        airport = known.airport(code.upper())
        if airport is None:
            abort(404, f"no airport in the ledger has the code {code[:10]}")
        given = filled_in(request.args.to_dict())
        require_known(given, ())
        leaving = breakdowns.by({**given, "ORIGIN": airport.code}, LEAVING)
        as_of = {"as_of": str(leaving["carrier"]["as_of"]["height"])}
        arriving = breakdowns.by({**given, **as_of, "DEST": airport.code}, ARRIVING)
        interval = interval_of(leaving["carrier"])
        answers = leaving | arriving
        rows = {by: rows_of(answer, by, known, interval) for by, answer in answers.items()}
        return Found(airport, leaving, arriving, rows)

    @routes.get("/airports/<code>")
    def page(code: str) -> str:
        """Departures by carrier, hour, weekday and destination; arrivals by origin."""
        airport, known = found(code), keeper.now()
        return render_template(
            "airport.html",
            found=airport,
            known=known,
            asked=FormRequest(airport.interval),
            intervals=offered(known, airport.interval["FINAL_DATE"]),
            hours=extremes(airport.rows["hour"]),
            others=other_airports(known, airport.airport),
            only_origins=breakdowns.only_origins(known),
            few_arrivals=FEW_ARRIVALS,
        )

    @twins(routes, "/airports/<code>")
    def twin(code: str) -> Twin:
        """The backend's answers about departures and arrivals; as CSV a line for each group."""
        airport = found(code)
        both = {"leaving": airport.leaving, "arriving": airport.arriving}
        rows, as_of = lines_of(airport.rows), airport.departures["as_of"]
        return Twin(both, ("group_by", "name", *FIGURES), rows, as_of)

    return routes
