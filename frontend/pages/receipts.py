"""`/receipts/ID`: what was accepted, and whether it is mined yet.

A receipt is made anew from the ledger each time. So it shows only what is in the ledger, and its
address can be kept and passed on. In a cluster ids are given when flights are mined: before, the
address is `/receipts/NODE-NUMBER-TAG`, which leads to the other one from then on.
"""

import shlex
from hashlib import sha256
from urllib.parse import quote

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.backend_client import Backend, Json
from frontend.errors import Refused
from frontend.field_labels import TRANSACTION, canonical
from frontend.pages.transactions import standing
from frontend.twins import JSON_ALONE, Twin, twins

GIVEN_BY_THE_LEDGER = {"TRANSACTION_ID", "timestamp"}


def blueprint(backend: Backend) -> Blueprint:
    """Receipts of the transactions of `backend`."""
    routes = Blueprint("receipts", __name__)

    def receipt(number: int) -> Json:
        found = standing(backend, number)
        return {
            **found,
            "next_block_at": found["tip"]["next_block_at"],
            "content_hash": _content_hash(found["transaction"]),
            "duplicate_of": _equal_one(
                backend, found["transaction"], request.args.get("duplicate_of", "")
            ),
        }

    @routes.get("/receipts/<int:number>")
    def page(number: int) -> str:
        """The receipt of one transaction."""
        found = receipt(number)
        content = canonical(found["transaction"], TRANSACTION)
        command = f"printf '\\000%s' {shlex.quote(content)} | sha256sum"
        return render_template("receipt.html", **found, command=command)

    @twins(routes, "/receipts/<int:number>", JSON_ALONE)
    def twin(number: int) -> Twin:
        """What the page shows, without the tip."""
        return Twin({name: value for name, value in receipt(number).items() if name != "tip"})

    _add_of_nodes(routes, backend)
    return routes


def _add_of_nodes(routes: Blueprint, backend: Backend) -> None:
    def accepted(name: str) -> Json:
        """What a node of a cluster accepted. Raises BackendAway, Refused."""
        found = backend.get(f"/receipts/{quote(name, safe='')}")
        return {**found, "name": name, "tip": backend.get("/tip")}

    @routes.get("/receipts/<name>")
    def of_node(name: str) -> str | AnyResponse:
        """The receipt of a node of a cluster; that of the transaction once it is mined."""
        found = accepted(name)
        transaction = found["transaction"]
        equal = _equal_one(backend, transaction, request.args.get("duplicate_of", ""))
        if transaction["TRANSACTION_ID"] is None:
            return render_template("receipt_of_node.html", **found, duplicate_of=equal)
        query = "" if equal is None else f"?duplicate_of={equal}"
        return redirect(f"/receipts/{transaction['TRANSACTION_ID']}{query}", 303)

    @routes.get("/receipts/<name>/state")
    def state_of_node(name: str) -> str:
        """The part of that page that changes; `refresh.js` puts it in its place."""
        return render_template("state_of_node.html", **accepted(name))


def _equal_one(backend: Backend, transaction: Json, number: str) -> int | None:
    """`number` as an id if an earlier equal transaction has it; else None, as links may lie."""
    if not (number.isascii() and number.isdigit()) or len(number) > 15:
        return None
    try:
        other = backend.get(f"/transactions/{int(number)}")["transaction"]
    except Refused:
        return None
    own = transaction["TRANSACTION_ID"]  # None while it is pending in a cluster
    is_earlier = own is None or other["TRANSACTION_ID"] < own
    return int(number) if is_earlier and _flight(other) == _flight(transaction) else None


def _content_hash(transaction: Json) -> str:
    """The hash of a transaction as a leaf of its block's Merkle tree (RFC 6962)."""
    content = canonical(transaction, TRANSACTION).encode("utf-8", "surrogatepass")
    return sha256(b"\x00" + content).hexdigest()


def _flight(transaction: Json) -> Json:
    return {name: value for name, value in transaction.items() if name not in GIVEN_BY_THE_LEDGER}
