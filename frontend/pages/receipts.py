"""`/receipts/ID`: what was accepted, and whether it is mined yet.

A receipt is built from the ledger each time. So it shows only what is in the ledger, and its
address can be kept and passed on. In a cluster ids are given when flights are mined: before, the
address is `/receipts/NODE-NUMBER-TAG`, which leads to the other one from then on.
"""

import shlex
from hashlib import sha256
from urllib.parse import quote

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend.backend_client import Json
from frontend.context import backend
from frontend.errors import Refused
from frontend.field_labels import TRANSACTION_NAMES, canonical
from frontend.pages.transactions import standing
from frontend.twins import JSON_ALONE, Twin, twins

LEG = ("FL_DATE", "OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST")

routes = Blueprint("receipts", __name__)


@routes.get("/receipts/<int:number>")
def page(number: int) -> str:
    receipt = _receipt(number)
    content = canonical(receipt["transaction"], TRANSACTION_NAMES)
    command = f"printf '\\000%s' {shlex.quote(content)} | sha256sum"
    return render_template("receipt.html", **receipt, command=command)


@twins(routes, "/receipts/<int:number>", JSON_ALONE)
def twin(number: int) -> Twin:
    """Return what the page shows, without the tip."""
    return Twin({name: value for name, value in _receipt(number).items() if name != "tip"})


@routes.get("/receipts/<name>")
def page_of_node(name: str) -> str | AnyResponse:
    """Return the receipt of a node of a cluster; that of the transaction once it is mined."""
    accepted = _accepted(name)
    transaction = accepted["transaction"]
    duplicate_of = _duplicate_of(transaction)
    if transaction["TRANSACTION_ID"] is None:
        return render_template("receipt_of_node.html", **accepted, duplicate_of=duplicate_of)
    query = "" if duplicate_of is None else f"?duplicate_of={duplicate_of}"
    return redirect(f"/receipts/{transaction['TRANSACTION_ID']}{query}", 303)


@routes.get("/receipts/<name>/state")
def state_of_node(name: str) -> str:
    """Return the part of that page that changes; `refresh.js` puts it in its place."""
    return render_template("state_of_node.html", **_accepted(name))


def _receipt(number: int) -> Json:
    answer = standing(number)
    content = canonical(answer["transaction"], TRANSACTION_NAMES).encode("utf-8", "surrogatepass")
    return {
        **answer,
        "next_block_at": answer["tip"]["next_block_at"],
        "content_hash": sha256(b"\x00" + content).hexdigest(),  # a leaf as in RFC 6962
        "duplicate_of": _duplicate_of(answer["transaction"]),
    }


def _accepted(name: str) -> Json:
    """Return what a node of a cluster accepted. Raises BackendAway, Refused."""
    answer = backend.get(f"/receipts/{quote(name, safe='')}")
    return {**answer, "name": name, "tip": backend.get("/tip")}


def _duplicate_of(transaction: Json) -> int | None:
    """Return the id in this address; None unless an earlier one of the leg has it."""
    number = request.args.get("duplicate_of", "")
    if not (number.isascii() and number.isdigit()) or len(number) > 15:
        return None
    try:
        other = backend.get(f"/transactions/{int(number)}")["transaction"]
    except Refused:
        return None
    own = transaction["TRANSACTION_ID"]  # None while it is pending in a cluster
    is_earlier = own is None or other["TRANSACTION_ID"] < own
    is_same = all(other[name] == transaction[name] for name in LEG)
    return int(number) if is_earlier and is_same else None
