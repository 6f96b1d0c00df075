"""`GET /blocks`, `/blocks/HEIGHT` and `/tip`."""

from flask import Blueprint, Response, request

from backend.api.answers import answer
from backend.api.reading import only, parameters, query_string, whole_number
from backend.chain.block import MAX_TRANSACTIONS
from backend.ledger import Ledger

MAX_HEADERS = 100
DEFAULT_HEADERS = "20"
WHOLE_BLOCK = str(MAX_TRANSACTIONS)


def blueprint(ledger: Ledger) -> Blueprint:
    """The blocks of `ledger`."""
    routes = Blueprint("blocks", __name__)

    @routes.get("/tip")
    def tip() -> Response:
        """Where the ledger stands."""
        only(parameters(query_string(request)))
        response = answer(ledger.tip())
        response.headers["Cache-Control"] = "no-cache"
        return response

    @routes.get("/blocks/<height>")
    def block(height: str) -> Response:
        """One block; `offset` and `limit` choose some of its transactions."""
        given = parameters(query_string(request))
        only(given, "offset", "limit")
        offset = whole_number("offset", given.get("offset", "0"), most=MAX_TRANSACTIONS)
        limit = whole_number("limit", given.get("limit", WHOLE_BLOCK), most=MAX_TRANSACTIONS)
        return answer({"block": ledger.block(whole_number("HEIGHT", height), offset, limit)})

    @routes.get("/blocks")
    def blocks() -> Response:
        """Headers, newest first, `limit` below height `before`; `next` is the following page."""
        given = parameters(query_string(request))
        only(given, "before", "limit")
        before = whole_number("before", given["before"]) if "before" in given else None
        limit = whole_number("limit", given.get("limit", DEFAULT_HEADERS), 1, MAX_HEADERS)
        found = ledger.blocks(before, limit)
        lowest = found[-1]["height"] if found else 0
        following = f"/blocks?before={lowest}&limit={limit}" if lowest > 0 else None
        return answer({"blocks": found, "next": following})

    return routes
