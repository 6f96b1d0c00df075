"""`/departures`: the flights of an airport or route on a day or at an hour."""

from collections.abc import Iterable
from functools import partial

from flask import Blueprint, request

from frontend import field_labels
from frontend.answer_page import answer_page
from frontend.form_request import filled_in
from frontend.question import DAY, HOUR
from frontend.questions.departures import HOURS, PATH, departures, with_days
from frontend.questions.figures import FIGURES, together
from frontend.questions.flights_of_day import Leg
from frontend.questions.group_rows import hours
from frontend.twins import Twin, twins

MOST_SHOWN = 100
FLIGHT = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status")
GROUP = ("OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST", "departure", *FIGURES)
BY_HOUR = (HOUR, "name", *FIGURES)

routes = Blueprint("departures", __name__)


@routes.get(PATH)
def page() -> tuple[str, int]:
    given = with_days(filled_in(request.args))
    return answer_page(
        "departures.html",
        partial(departures, most=MOST_SHOWN),
        given,
        most=MOST_SHOWN,
        hour_names=[(hour, hours(hour)) for hour in range(HOURS)],
    )


@twins(routes, PATH)
def twin() -> Twin:
    """Return the service's answers; as CSV a day's flights, or several days' numbers or hours."""
    board = departures(with_days(filled_in(request.args)))
    answer = board.answer
    rows: Iterable[Leg]
    if DAY in board.question.values:
        columns, rows = FLIGHT, board.all_flights()
    elif "by_departure" in answer:
        columns, rows = GROUP, board.groups
        if board.hour is not None:
            figures = together(rows)  # of flights that all have a departure delay
            delays = [row["average_departure_delay"] * row["flights"] for row in rows]
            mean = sum(delays) / figures["flights"] if rows else None
            asked = answer["query"] | {HOUR: board.hour}
            answer = {**answer, **figures, "average_departure_delay": mean, "query": asked}
        answer = {**answer, "by_departure": rows, "groups": len(rows)}
    else:
        columns, rows = BY_HOUR, [row.as_json() for row in board.hours]
    return Twin({"departures": answer, "hours": board.by_hour}, columns, rows, answer["as_of"])
