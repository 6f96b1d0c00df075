"""`/add`: one flight, from the form to the ledger, in two steps.

The form is checked first: the next page shows what will be added, with everything that follows from
what was typed, and whether the same flight is in the ledger already. Its button adds the flight.

Form and page carry an Idempotency-Key, so that sending it again (a double click, a reload) gets the
receipt of the first time. After any error the form comes back as it was filled in.
"""

import re
import secrets
from contextlib import suppress

from flask import Blueprint, Response, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.adding.flight_form import AIRPORTS, asks_where, problems_of, record_of, typed
from frontend.adding.submitted_form import SubmittedForm, form_after, token_in
from frontend.context import backend, coverage
from frontend.errors import BackendAway, Refused
from frontend.form_request import Values

CHECK, CHANGE, ADD = "check", "change", "add"  # what a button asks for
AGAIN = "What you typed is still here: please send it again."

_is_key = re.compile(r"[0-9a-f]{32}").fullmatch

routes = Blueprint("adding", __name__)


@routes.get("/add")
def empty_form() -> Response:
    coverage.now()  # if the ledger is away, the page that says so is shown
    return _form(SubmittedForm(), _new_key())


@routes.post("/add")
def add() -> AnyResponse:
    """Check the flight, or add it; if something is wrong, the form comes back."""
    step, values = request.form.get("step", CHECK), typed(request.form)
    if step == CHANGE:
        return _form(SubmittedForm(values), _key())
    try:
        return _added(values) if step == ADD else _checked(SubmittedForm(values))
    except (BackendAway, Refused) as problem:
        return _again(problem, values)


def _form(form: SubmittedForm, key: str) -> Response:
    known = coverage.last_known()
    return form.response(
        render_template(
            "add.html",
            filled=form,
            known=known,
            key=key,
            new_airports=[name for name in AIRPORTS if asks_where(name, form.values, known)],
        )
    )


def _again(problem: BackendAway | Refused, values: Values) -> Response:
    """Show the form as it was sent, with the problem; or the checked flight, without a token."""
    if isinstance(problem, Refused) and problem.field == "Idempotency-Key":
        return _form(SubmittedForm(values, _other_flight(problem), status=422), _new_key())
    if isinstance(problem, Refused) and problem.errors:
        problems = problems_of(problem, values, coverage.last_known())
        return _form(SubmittedForm(values, problems=problems, status=422), _key())
    form = form_after(problem, values, token_in(request.form), AGAIN)
    if form.wants_token:
        with suppress(BackendAway, Refused):
            return _checked(form)
    return _form(form, _key())


def _checked(form: SubmittedForm) -> Response:
    """Return what will be added, and what is there already. Raises BackendAway, Refused."""
    known = coverage.now()
    check = backend.check(record_of(form.values, known))
    return form.response(
        render_template(
            "add_checked.html",
            filled=form,
            flight=check["flight"],
            known=known,
            duplicate_of=check["duplicate_of"],
            conflicts_with=check["conflicts_with"],
            key=_key(),
            wants_token=backend.wants_token(),
        )
    )


def _added(values: Values) -> AnyResponse:
    """Add the flight: 303 to the receipt. Raises BackendAway, Refused."""
    record = record_of(values, coverage.last_known())
    receipt = backend.add(record, _key(), token_in(request.form))
    duplicate_of, number = receipt["duplicate_of"], receipt["TRANSACTION_ID"]
    query = "" if duplicate_of is None else f"?duplicate_of={duplicate_of}"
    address = receipt["receipt"] if number is None else f"/receipts/{number}"
    return redirect(address + query, 303)


def _new_key() -> str:
    return secrets.token_hex(16)


def _key() -> str:
    """Return the Idempotency-Key of the form that was sent; a new one if it was tampered with."""
    key = request.form.get("key", "")
    return key if _is_key(key) else _new_key()


def _other_flight(problem: Refused) -> str:
    match = re.search(r"transaction \d+", str(problem))
    return (
        "This form was sent before with other values, and that flight was added"
        f"{f' ({match[0]})' if match else ''}. If you want to add this one as well, send it again."
    )
