"""`/route`: a route between two airports or cities."""

from flask import Blueprint, request

from frontend.answer_page import answer_page
from frontend.form_request import filled_in
from frontend.questions.figures import FIGURES
from frontend.questions.group_rows import csv_rows
from frontend.questions.route_delays import route_delays
from frontend.twins import Twin, twins

routes = Blueprint("route", __name__)


@routes.get("/route")
def page() -> tuple[str, int]:
    return answer_page("route.html", route_delays)


@twins(routes, "/route")
def twin() -> Twin:
    """Return the backend's answers, and that about the way back; as CSV a line for each group."""
    route = route_delays(filled_in(request.args))
    answers = {**route.answers, "back": route.back}
    columns = ("group_by", "name", *FIGURES)
    return Twin(answers, columns, csv_rows(route.rows), route.total["as_of"])
