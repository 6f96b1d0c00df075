"""`/route`: a route between two airports or cities."""

from flask import Blueprint, render_template, request

from frontend.charts.maps import distance_between
from frontend.context import coverage
from frontend.form_request import filled_in, submit
from frontend.questions.figures import FIGURES
from frontend.questions.group_rows import csv_rows
from frontend.questions.route_delays import route_delays
from frontend.twins import Twin, twins

routes = Blueprint("route", __name__)


@routes.get("/route")
def page() -> tuple[str, int]:
    known = coverage.at(request.args.get("as_of"))
    form = submit(request.args, route_delays)
    route = form.answer
    text = render_template(
        "route.html",
        form_request=form,
        known=known,
        route=route,
        distance=distance_between(*route.airports) if route else None,
    )
    return text, form.status


@twins(routes, "/route")
def twin() -> Twin:
    """The backend's answers, and that about the way back; as CSV a line for each group."""
    route = route_delays(filled_in(request.args))
    answers = {**route.answers, "back": route.back}
    columns = ("group_by", "name", *FIGURES)
    return Twin(answers, columns, csv_rows(route.rows), route.total["as_of"])
