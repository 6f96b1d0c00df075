"""`/add`: one flight, from the form to the ledger, in two steps.

The form is checked first: the next page shows what will be added, with everything that follows from
what was typed, and whether the same flight is in the ledger already. Its button adds the flight.

Form and page carry an Idempotency-Key, so that sending it again (a double click, a reload) gets the
receipt of the first time. After any error the form comes back as it was filled in.
"""

import re
import secrets
from contextlib import suppress

from flask import Blueprint, Response, make_response, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.adding.flight_form import (
    AIRPORTS,
    asks_where,
    problems_of,
    record_of,
    typed,
    wrong,
)
from frontend.adding.submitted_form import SubmittedForm, come_back, token_in
from frontend.backend_client import Backend
from frontend.coverage import CoverageKeeper
from frontend.errors import BackendAway, Refused
from frontend.form_request import Values

CHECK, CHANGE, ADD = "check", "change", "add"  # what a button asks for
AGAIN = "What you typed is still here: please send it again."

_is_key = re.compile(r"[0-9a-f]{32}").fullmatch


def blueprint(backend: Backend, coverage: CoverageKeeper) -> Blueprint:
    """The form, and the route that checks and adds its flight."""
    routes = Blueprint("adding", __name__)
    adding = _Adding(backend, coverage)

    @routes.get("/add")
    def form() -> Response:
        """An empty form; if the ledger is away, the page that says so."""
        coverage.now()
        return adding.form(SubmittedForm(), new_key())

    @routes.post("/add")
    def add() -> AnyResponse:
        """Check the flight, or add it; if something is wrong, the form comes back."""
        return adding.step(request.form.get("step", CHECK))

    return routes


class _Adding:
    """Answers to the form that comes with a request."""

    def __init__(self, backend: Backend, coverage: CoverageKeeper) -> None:
        self._backend = backend
        self._coverage = coverage

    def step(self, asked_for: str) -> AnyResponse:
        """Do what a button asks for."""
        values = typed(request.form)
        if asked_for == CHANGE:
            return self.form(SubmittedForm(values), _key())
        try:
            return self._added(values) if asked_for == ADD else self._checked(SubmittedForm(values))
        except (BackendAway, Refused) as problem:
            return self.again(problem)

    def form(self, filled: SubmittedForm, key: str) -> Response:
        """The page with the form."""
        known = self._coverage.last_known()
        page = render_template(
            "add.html",
            filled=filled,
            wrong=wrong(filled.problems),
            known=known,
            key=key,
            new_airports=[name for name in AIRPORTS if asks_where(name, filled.values, known)],
        )
        return filled.finish(make_response(page))

    def again(self, problem: Exception) -> Response:
        """The form as it was sent, with the problem; or the checked flight, if it lacks a token."""
        values = typed(request.form)
        if is_used_up(problem):
            return self.form(SubmittedForm(values, _other_flight(problem), status=422), new_key())
        if isinstance(problem, Refused) and problem.errors:
            wrongs = problems_of(problem, values, self._coverage.last_known())
            return self.form(SubmittedForm(values, problems=wrongs, status=422), _key())
        filled = come_back(problem, values, token_in(request.form), AGAIN)
        if filled.wants_token:
            with suppress(BackendAway, Refused):
                return self._checked(filled)
        return self.form(filled, _key())

    def _checked(self, filled: SubmittedForm) -> Response:
        """What will be added, and what is there already. Raises BackendAway, Refused."""
        known = self._coverage.now()
        found = self._backend.try_one(record_of(filled.values, known))
        page = render_template(
            "add_checked.html",
            filled=filled,
            flight=found["flight"],
            known=known,
            duplicate_of=found["duplicate_of"],
            key=_key(),
            wants_token=self._backend.wants_token(),
        )
        return filled.finish(make_response(page))

    def _added(self, values: Values) -> AnyResponse:
        """Add the flight: 303 to the receipt. Raises BackendAway, Refused."""
        record = record_of(values, self._coverage.last_known())
        receipt = self._backend.add(record, _key(), token_in(request.form))
        equal = receipt["duplicate_of"]
        query = "" if equal is None else f"?duplicate_of={equal}"
        number = receipt["TRANSACTION_ID"]
        address = receipt["receipt"] if number is None else f"/receipts/{number}"
        return redirect(address + query, 303)


def new_key() -> str:
    """An Idempotency-Key."""
    return secrets.token_hex(16)


def _key() -> str:
    """The key of the form that was sent; a new one if it was tampered with."""
    key = request.form.get("key", "")
    return key if _is_key(key) else new_key()


def is_used_up(problem: Exception) -> bool:
    """Whether the key of the form came with another flight before."""
    return isinstance(problem, Refused) and problem.field == "Idempotency-Key"


def _other_flight(problem: Exception) -> str:
    found = re.search(r"transaction \d+", str(problem))
    return (
        "This form was sent before with other values, and that flight was added"
        f"{f' ({found[0]})' if found else ''}. If you want to add this one as well, send it again."
    )
