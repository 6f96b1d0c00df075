"""`/months`: a month of BTS, which the service downloads and imports, and how far that is."""

from calendar import month_name
from datetime import UTC, datetime

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.adding.submitted_form import SubmittedForm, form_after, token_in
from frontend.context import backend
from frontend.errors import BackendAway, Refused

AGAIN = "Please send it again."
FIRST_YEAR = 1987
FIELDS = ("YEAR", "MONTH")

routes = Blueprint("months", __name__)


@routes.get("/months")
def page() -> Response:
    return _page(SubmittedForm())


@routes.get("/months/state")
def state() -> str:
    return render_template("month_state.html", fetch=backend.get("/months"))


@routes.post("/months")
def fetch() -> AnyResponse:
    """Have the month fetched: 303 to the page that says how far it is."""
    values = {name: request.form.get(name, "") for name in FIELDS}
    try:
        backend.fetch_month("-".join(values.values()), token_in(request.form))
    except (BackendAway, Refused) as problem:
        return _page(form_after(problem, values, token_in(request.form), AGAIN))
    return redirect("/months", 303)


def _page(form: SubmittedForm) -> Response:
    years = range(datetime.now(UTC).year, FIRST_YEAR - 1, -1)
    return form.response(
        render_template(
            "add_month.html",
            filled=form,
            fetch=backend.get("/months"),
            is_cluster="cluster" in backend.get("/tip"),
            years=[(year, year) for year in years],
            months=[(f"{number:02}", month_name[number]) for number in range(1, 13)],
        )
    )
