"""The chain: its blocks, newest first, and each block, which the visitor's browser checks."""

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, redirect, render_template, request
from werkzeug.wrappers import Response as Answer

from frontend import field_labels
from frontend.backend_client import Backend, Json
from frontend.block_rows import by_height
from frontend.errors import Refused
from frontend.form_request import BAD_INPUT, FormRequest, asked, filled_in
from frontend.twins import Twin, twins

BLOCKS_A_PAGE = 25
TRANSACTIONS_A_PAGE = 50
HEADER_COLUMNS = (
    "height",
    "hash",
    *(name for name in field_labels.HEADER_NAMES if name != "height"),
)
TRANSACTION_COLUMNS = (*field_labels.TRANSACTION_NAMES, "BLOCK_HEIGHT")


def blueprint(backend: Backend) -> Blueprint:
    """The list of blocks, single blocks, and their twins."""
    routes = Blueprint("blocks", __name__)
    _add_list(routes, backend)
    _add_block(routes, backend)
    return routes


# --- the list ------------------------------------------------------------------------------------


def _add_list(routes: Blueprint, backend: Backend) -> None:
    def listed(given: dict[str, str]) -> Json:
        more = {} if "hash" in given else {"limit": BLOCKS_A_PAGE}
        return backend.get("/blocks", {**given, **more})

    @routes.get("/blocks")
    def blocks() -> Answer | tuple[str, int]:
        """Headers, newest first; a height or hash in the form leads to its block."""
        given = filled_in(request.args)
        if wanted := given.pop("height", None):
            return _jump(backend, wanted)
        question = asked(given or {"limit": str(BLOCKS_A_PAGE)}, listed)
        found = question.answer
        if "hash" in given and found and (rows := by_height(found)):
            return redirect(f"/blocks/{rows[0]['height']}")
        return _list_page(backend, question)

    @twins(routes, "/blocks")
    def blocks_twin() -> Twin:
        """The headers of a page, and the address of the next one; as CSV a row for each block."""
        found = listed(filled_in(request.args))
        return Twin(_with_next(found), HEADER_COLUMNS, by_height(found))


def _with_next(found: Json) -> Json:
    """A page of headers, with the address of the next page here."""
    following = found["next"] and f"/blocks.json?before={by_height(found)[-1]['height']}"
    return {**found, "next": following}


def _jump(backend: Backend, wanted: str) -> Answer | tuple[str, int]:
    """Redirect to the block with the typed height or hash, or show the list and what is wrong."""
    height = wanted.replace(",", "")
    detail = "must be a whole number from 0"
    if height.isascii() and height.isdigit():
        try:
            return redirect(f"/blocks/{_block(backend, height, {'limit': '0'})['height']}")
        except Refused as error:
            if error.damaged_blocks:
                return redirect(f"/blocks/{int(height)}")
            if error.status not in BAD_INPUT | {404}:
                raise
            detail = error.detail
    refused = Refused({"field": "height", "detail": detail}, 404, None)
    return _list_page(backend, FormRequest({"height": wanted}, None, refused))


def _list_page(backend: Backend, question: FormRequest) -> tuple[str, int]:
    """The list for a question; if that is refused, the newest blocks below the message."""
    found: Any = question.answer or backend.get("/blocks", {"limit": BLOCKS_A_PAGE})
    tip = backend.get("/tip")["height"]
    shown = render_template(
        "blocks.html",
        asked=question,
        blocks=by_height(found),
        has_older=bool(found["next"]),
        tip=tip,
        cosigned=_cosigned(backend),
        page_size=BLOCKS_A_PAGE,
    )
    return shown, question.status


def _cosigned(backend: Backend) -> Json:
    """Who has cosigned the newest checkpoint; nobody while none is signed."""
    try:
        return backend.get("/log/witnesses")
    except Refused:
        return {"size": 0, "witnesses": []}


# --- a block -------------------------------------------------------------------------------------


def _add_block(routes: Blueprint, backend: Backend) -> None:
    @routes.get("/blocks/<int:height>")
    def block(height: int) -> str | tuple[str, int]:
        """The page of a block; of a damaged one, what is known of it."""
        try:
            return whole_page(height)
        except Refused as error:
            if height not in error.damaged_blocks:
                raise
            return _damaged_page(backend, height, error)

    def whole_page(height: int) -> str:
        """The header of a block, and its transactions by pages."""
        given = filled_in(request.args)
        is_checked = _is_wanted("check", given, "transactions")
        found = _block(backend, height, {**given, "limit": str(TRANSACTIONS_A_PAGE)})
        around = _around(backend, height)
        return render_template(
            "block.html",
            block=found,
            below=around.get(height - 1),
            above=around.get(height + 1),
            offset=int(given.get("offset", 0)),
            page_size=TRANSACTIONS_A_PAGE,
            is_checked=is_checked,
            header=list(field_labels.in_words(field_labels.HEADER, found)),
            canonical=field_labels.canonical(found, field_labels.HEADER),
        )

    @twins(routes, "/blocks/<int:height>")
    def block_twin(height: int) -> Twin:
        """The whole block; as CSV its transactions, in a form that can be imported."""
        whole = _block(backend, height, filled_in(request.args))
        rows = ({**each, "BLOCK_HEIGHT": height} for each in whole["transactions"])
        return Twin({"block": whole}, TRANSACTION_COLUMNS, rows)


def _block(backend: Backend, height: int | str, parameters: Mapping[str, str]) -> Json:
    found: Json = backend.get(f"/blocks/{height}", parameters)["block"]
    return found


def _around(backend: Backend, height: int) -> dict[int, Json]:
    """What is known of the block at `height` and of those beside it, by height."""
    found = by_height(backend.get("/blocks", {"before": height + 2, "limit": 3}))
    return {row["height"]: row for row in found}


def _damaged_page(backend: Backend, height: int, error: Refused) -> tuple[str, int]:
    around = _around(backend, height)
    page = render_template(
        "damaged_block.html",
        block=around.get(height, {"height": height}),
        below=around.get(height - 1),
        above=around.get(height + 1),
        detail=error.detail,
    )
    return page, error.status


def _is_wanted(name: str, given: dict[str, str], value: str) -> bool:
    """Whether `name` has that value; takes it out of `given`. Raises Refused for another value."""
    text = given.pop(name, None)
    if text not in {None, value}:
        raise Refused.parameter(name, text, f"must be {value}, or left out")
    return text is not None
