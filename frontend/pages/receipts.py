"""`/receipts/ID`: what was accepted, and whether it is mined yet.

A receipt is made anew from the ledger each time. So it shows only what is in the ledger, and its
address can be kept and passed on.
"""

import shlex

from flask import Blueprint, Response, render_template, request

from frontend.backend_client import Backend, Json
from frontend.errors import Refused
from frontend.fields import TRANSACTION_NAMES
from frontend.integrity import canonical, leaf_hash
from frontend.pages.transactions import standing
from frontend.tables import json_twin

GIVEN_BY_THE_LEDGER = {"TRANSACTION_ID", "timestamp"}


def blueprint(backend: Backend) -> Blueprint:
    """Receipts of the transactions of `backend`."""
    routes = Blueprint("receipts", __name__)

    def receipt(number: int) -> Json:
        found = standing(backend, number)
        return {
            **found,
            "next_block_at": found["tip"]["next_block_at"],
            "content_hash": leaf_hash(_content(found["transaction"])).hex(),
            "duplicate_of": _equal_one(found["transaction"], request.args.get("duplicate_of", "")),
        }

    def _equal_one(transaction: Json, number: str) -> int | None:
        """`number` as an id if an earlier equal transaction has it; else None, as links may lie."""
        if not (number.isascii() and number.isdigit()) or len(number) > 15:
            return None
        try:
            other = backend.get(f"/transactions/{int(number)}")["transaction"]
        except Refused:
            return None
        is_earlier = other["TRANSACTION_ID"] < transaction["TRANSACTION_ID"]
        return int(number) if is_earlier and _flight(other) == _flight(transaction) else None

    @routes.get("/receipts/<int:number>")
    def page(number: int) -> str:
        """The receipt of one transaction."""
        found = receipt(number)
        content = _content(found["transaction"]).decode()
        command = f"printf '\\000%s' {shlex.quote(content)} | sha256sum"
        return render_template("receipt.html", **found, command=command)

    @routes.get("/receipts/<int:number>.json")
    def twin(number: int) -> Response:
        """The twin of the receipt."""
        found = receipt(number)
        del found["tip"]
        return json_twin(found)

    return routes


def _content(transaction: Json) -> bytes:
    """The bytes whose hash the ledger keeps."""
    return canonical(transaction, TRANSACTION_NAMES)


def _flight(transaction: Json) -> Json:
    return {name: value for name, value in transaction.items() if name not in GIVEN_BY_THE_LEDGER}
