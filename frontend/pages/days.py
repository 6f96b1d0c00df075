"""`/days/YYYY-MM-DD`: one day, carrier by carrier."""

from datetime import date, timedelta

from flask import Blueprint, abort, render_template, request

from frontend.backend_client import Json
from frontend.context import backend, coverage
from frontend.form_request import filled_in
from frontend.question import Question, require_known
from frontend.questions.group_queries import question_of
from frontend.questions.group_rows import FIGURES
from frontend.twins import Twin, twins

FIRST_YEAR, LAST_YEAR = 1900, 2199  # the ledger takes no other years
COLUMNS = (
    *("OP_CARRIER_AIRLINE_ID", "carrier"),
    *(name for name in FIGURES if name != "average_departure_delay"),
)

routes = Blueprint("days", __name__)


@routes.get("/days/<day>")
def page(day: str) -> str:
    when, known = _day(day), coverage.at(request.args.get("as_of"))
    carriers, question, _ = _carriers_on(day)
    beside = {"before": str(when - timedelta(1)), "after": str(when + timedelta(1))}
    links = {name: other if known.covers(other) else None for name, other in beside.items()}
    return render_template("day.html", day=day, carriers=carriers, question=question, **links)


@twins(routes, "/days/<day>")
def twin(day: str) -> Twin:
    _day(day)
    carriers, _, as_of = _carriers_on(day)
    rows = [{column: row[column] for column in COLUMNS} for row in carriers]
    return Twin({"FL_DATE": day, "carriers": rows, "as_of": as_of}, COLUMNS, rows, as_of)


def _carriers_on(day: str) -> tuple[list[Json], Question, Json]:
    """The figures of each carrier with flights on `day`, most first; the last block counted."""
    known, given = coverage.now(), filled_in(request.args)
    require_known(given)
    interval = {"INITIAL_DATE": day, "FINAL_DATE": day}
    answer = backend.get("/average_delays", {**given, **interval, "group_by": "carrier"})
    rows = [
        {**row, "carrier": known.carrier(row["OP_CARRIER_AIRLINE_ID"]).label}
        for row in answer["by_carrier"]
    ]
    return rows, question_of("average_delays", answer, given), answer["as_of"]


def _day(text: str) -> date:
    """Return the day that an address names. Aborts with 404 if it names none."""
    try:
        when = date.fromisoformat(text)
    except ValueError:
        when = date.min
    if when.isoformat() != text or not FIRST_YEAR <= when.year <= LAST_YEAR:
        abort(404, f"{text} is not a day; write it as in /days/2013-01-05")
    return when
