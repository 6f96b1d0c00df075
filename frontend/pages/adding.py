"""`/add`: one flight, from the form to the ledger.

The form carries an Idempotency-Key, so that sending it again (a double click, a reload) gets the
receipt of the first time. After any error the form comes back as it was filled in.
"""

import re
import secrets

from flask import Blueprint, Response, make_response, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.adding.filled import Filled, come_back, token_in
from frontend.adding.flight_form import AIRPORTS, asks_where, problems_of, record_of, typed, wrong
from frontend.backend_client import Backend
from frontend.coverage import CoverageKeeper
from frontend.errors import BackendAway, Refused
from frontend.forgery import CSRFError

AGAIN = "What you typed is still here: please send it again."

_is_key = re.compile(r"[0-9a-f]{32}").fullmatch


def blueprint(backend: Backend, coverage: CoverageKeeper) -> Blueprint:
    """The form, and the route that adds its flight."""
    routes = Blueprint("adding", __name__)

    def shown(filled: Filled, key: str, *, wants_token: bool) -> Response:
        known = coverage.last_known()
        page = render_template(
            "add.html",
            filled=filled,
            wrong=wrong(filled.problems),
            known=known,
            key=key,
            wants_token=wants_token,
            new_airports=[name for name in AIRPORTS if asks_where(name, filled.values, known)],
        )
        return filled.finish(make_response(page))

    def again(problem: Exception) -> Response:
        """The form as it was sent, with the problem."""
        values, token = typed(request.form), token_in(request.form)
        if is_used_up(problem):
            filled = Filled(values, _other_flight(problem), status=422)
            return shown(filled, new_key(), wants_token=bool(token))
        if isinstance(problem, Refused) and problem.errors:
            filled = Filled(
                values, problems=problems_of(problem, values, coverage.last_known()), status=422
            )
        else:
            filled = come_back(problem, values, token, AGAIN)
        return shown(filled, _key(), wants_token=bool(token) or filled.wants_token)

    @routes.get("/add")
    def form() -> Response:
        """An empty form; if the ledger is away, the page that says so."""
        return shown(Filled(), new_key(), wants_token=backend.wants_token())

    @routes.post("/add")
    def add() -> AnyResponse:
        """Add the flight: 303 to the receipt, or the form again."""
        try:
            record = record_of(typed(request.form), coverage.last_known())
            receipt = backend.add(record, _key(), token_in(request.form))
        except (BackendAway, Refused) as problem:
            return again(problem)
        equal = receipt["duplicate_of"]
        query = "" if equal is None else f"?duplicate_of={equal}"
        return redirect(f"/receipts/{receipt['TRANSACTION_ID']}{query}", 303)

    routes.register_error_handler(CSRFError, again)
    return routes


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
        "This form was sent before with something else in it, and that flight was added"
        f"{f' ({found[0]})' if found else ''}. If you want to add this one as well, send it again."
    )
