"""The chain: its blocks, newest first, and each block, which the visitor's browser checks."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from frontend import field_labels
from frontend.backend_client import Json, by_height
from frontend.context import backend
from frontend.errors import Refused
from frontend.form_request import BAD_INPUT, FormRequest, filled_in, submit
from frontend.pages.home import newest_blocks
from frontend.twins import Twin, twins

BLOCKS_A_PAGE = 25
TRANSACTIONS_A_PAGE = 50
HEADER_COLUMNS = dict.fromkeys(("height", "hash", *field_labels.HEADER_NAMES))
TRANSACTION_COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT")

Answer = AnyResponse | tuple[str, int]

routes = Blueprint("blocks", __name__)


# --- the list ------------------------------------------------------------------------------------


@routes.get("/blocks")
def blocks() -> Answer:
    """Show headers, newest first; a height or hash in the form leads to its block."""
    given = filled_in(request.args)
    if height := given.pop("height", None):
        return _block_of_form(height)
    form = submit(given or {"limit": str(BLOCKS_A_PAGE)}, _headers)
    if "hash" in given and form.answer and (rows := by_height(form.answer)):
        return redirect(f"/blocks/{rows[0]['height']}")
    return _list_page(form)


@twins(routes, "/blocks")
def blocks_twin() -> Twin:
    """Return the headers of a page, and the address of the next one; as CSV a row a block."""
    answer = _headers(filled_in(request.args))
    rows = by_height(answer)
    following = answer["next"] and f"/blocks.json?before={rows[-1]['height']}"
    return Twin({**answer, "next": following}, [*HEADER_COLUMNS], rows)


def _headers(given: dict[str, str]) -> Json:
    more = {} if "hash" in given else {"limit": BLOCKS_A_PAGE}
    return backend.get("/blocks", {**given, **more})


def _block_of_form(typed: str) -> Answer:
    """Redirect to the block with the typed height or hash, or show the list and what is wrong."""
    height = typed.replace(",", "")
    detail = "must be a whole number from 0"
    if height.isascii() and height.isdigit():
        try:
            return redirect(f"/blocks/{_block(height, {'limit': '0'})['height']}")
        except Refused as error:
            if error.damaged_blocks:
                return redirect(f"/blocks/{int(height)}")
            if error.status not in BAD_INPUT | {404}:
                raise
            detail = error.detail
    refused = Refused({"field": "height", "detail": detail}, 404)
    return _list_page(FormRequest({"height": typed}, None, refused))


def _list_page(form: FormRequest[Json]) -> tuple[str, int]:
    """Return the list for a question; if that is refused, the newest blocks below the message."""
    answer: Any = form.answer or backend.get("/blocks", {"limit": BLOCKS_A_PAGE})
    text = render_template(
        "blocks.html",
        form_request=form,
        blocks=by_height(answer),
        has_older=bool(answer["next"]),
        **newest_blocks(),
        cosigned=_cosigned(),
        page_size=BLOCKS_A_PAGE,
    )
    return text, form.status


def _cosigned() -> Json:
    """Return who has cosigned the newest checkpoint; nobody while none is signed."""
    try:
        return backend.get("/log/witnesses")
    except Refused:
        return {"size": 0, "witnesses": []}


# --- a block -------------------------------------------------------------------------------------


@routes.get("/blocks/<int:height>")
def block(height: int) -> str | tuple[str, int]:
    """Return the page of a block; of a damaged one, what is known of it."""
    try:
        return _whole_page(height)
    except Refused as error:
        if height not in error.damaged_blocks:
            raise
        around = _around(height)
        page = render_template(
            "damaged_block.html",
            block=around.get(height, {"height": height}),
            below=around.get(height - 1),
            above=around.get(height + 1),
            detail=error.detail,
        )
        return page, error.status


@twins(routes, "/blocks/<int:height>")
def block_twin(height: int) -> Twin:
    """Return the whole block; as CSV its transactions, in a form that can be imported."""
    whole = _block(height, filled_in(request.args))
    rows = ({**transaction, "BLOCK_HEIGHT": height} for transaction in whole["transactions"])
    return Twin({"block": whole}, TRANSACTION_COLUMNS, rows)


def _whole_page(height: int) -> str:
    """Return the header of a block, and its transactions by pages."""
    given = filled_in(request.args)
    check = given.pop("check", None)
    if check not in {None, "transactions"}:
        raise Refused.parameter("check", check, "must be transactions, or left out")
    shown = _block(height, {**given, "limit": str(TRANSACTIONS_A_PAGE)})
    around = _around(height)
    return render_template(
        "block.html",
        block=shown,
        below=around.get(height - 1),
        above=around.get(height + 1),
        offset=int(given.get("offset", 0)),
        page_size=TRANSACTIONS_A_PAGE,
        is_checked=check is not None,
        header=list(field_labels.in_words(field_labels.HEADER_FIELDS, shown)),
        canonical=field_labels.canonical(shown, field_labels.HEADER_NAMES),
    )


def _block(height: int | str, parameters: Mapping[str, str]) -> Json:
    answer: Json = backend.get(f"/blocks/{height}", parameters)["block"]
    return answer


def _around(height: int) -> dict[int, Json]:
    """Return what is known of the block at `height` and of those beside it, by height."""
    rows = by_height(backend.get("/blocks", {"before": height + 2, "limit": 3}))
    return {row["height"]: row for row in rows}
