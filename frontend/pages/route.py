"""`/route`: a route between two airports or cities."""

from flask import Blueprint, Response, render_template, request

from frontend.backend_client import Backend, Json
from frontend.charts.coordinates import Places
from frontend.charts.maps import Maps
from frontend.coverage import CoverageKeeper
from frontend.form_request import asked, filled_in
from frontend.questions.delays import FEW_ARRIVALS
from frontend.questions.group_queries import Breakdowns
from frontend.questions.group_rows import FIGURES, lines_of
from frontend.questions.intervals import offered
from frontend.questions.route_delays import Route, asked_route
from frontend.twins import Twin, twins

PATH = "/route"


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/route` and its twins."""
    routes = Blueprint("route", __name__)
    maps = Maps(Places())
    breakdowns = Breakdowns(backend, keeper)

    def answer(given: dict[str, str]) -> Json:
        return {"route": asked_route(given, keeper.now(), breakdowns)}

    def found() -> Route:
        route: Route = answer(filled_in(request.args.to_dict()))["route"]
        return route

    @routes.get(PATH)
    def page() -> Response:
        """The route with its carriers, hours, weekdays and pairs of airports."""
        known = keeper.now()
        result = asked(filled_in(request.args.to_dict()), answer)
        route: Route | None = result.answer["route"] if result.answer else None
        text = render_template(
            "route.html",
            asked=result,
            known=known,
            route=route,
            few_arrivals=FEW_ARRIVALS,
            intervals=offered(known, route.interval["FINAL_DATE"] if route else None),
            map=maps.route(known, *route.cities) if route else None,
        )
        return Response(text, result.status, content_type="text/html; charset=utf-8")

    @twins(routes, PATH)
    def twin() -> Twin:
        """The backend's answers, and that about the way back; as CSV a line for each group."""
        route = found()
        rows = lines_of(route.rows)
        both = {**route.answers, "back": route.back}
        return Twin(both, ("group_by", "name", *FIGURES), rows, route.total["as_of"])

    return routes
