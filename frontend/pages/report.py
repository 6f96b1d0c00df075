"""`/report`: the report card of a flight number."""

from flask import Blueprint, Response, render_template, request

from frontend import field_labels
from frontend.backend_client import Backend, Json
from frontend.coverage import CoverageKeeper, all_days
from frontend.flight_numbers import CARRIER, NUMBER, understood
from frontend.form_request import asked, filled_in
from frontend.questions.delays import FEW_ARRIVALS
from frontend.questions.group_queries import require_known
from frontend.questions.intervals import offered
from frontend.questions.punctuality_report import SIGNS, cards
from frontend.twins import Twin, twins

PATH = "/report"
COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT", "status")


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/report` and its twins."""
    routes = Blueprint("report", __name__)

    def answer(given: dict[str, str]) -> Json:
        """All flights of the number in the interval. Raises Refused, BackendAway."""
        require_known(given, (NUMBER, CARRIER))
        known = keeper.now()
        given = all_days(known) | understood(given, known)
        first = given.pop("INITIAL_DATE", "")
        return backend.get("/filter_transactions", {**given, "FL_DATE": first} if first else given)

    @routes.get(PATH)
    def page() -> Response:
        """The form, and the card of the carrier that uses the number most, or of the one chosen."""
        known = keeper.now()
        result = asked(filled_in(request.args.to_dict()), answer)
        found = result.answer
        query = found["query"] if found else {}
        text = render_template(
            "report.html",
            known=known,
            asked=result,
            query=query,
            cards=cards(found["flights"], known) if found else [],
            intervals=offered(known, query.get("FINAL_DATE")),
            signs=SIGNS,
            few_arrivals=FEW_ARRIVALS,
            as_of=found["as_of"]["height"] if found else None,
        )
        return Response(text, result.status, content_type="text/html; charset=utf-8")

    @twins(routes, PATH)
    def twin() -> Twin:
        """All flights of the number."""
        found = answer(filled_in(request.args.to_dict()))
        return Twin(found, COLUMNS, found["flights"], found["as_of"])

    return routes
