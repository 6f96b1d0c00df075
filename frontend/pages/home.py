"""The home page, and the part of it that keeps itself up to date."""

from flask import Blueprint, render_template

from frontend.backend_client import Json
from frontend.block_rows import by_height
from frontend.context import backend
from frontend.errors import Refused
from frontend.twins import JSON_ALONE, Twin, twins

RECENT_BLOCKS, STRIP_BLOCKS = 6, 12

routes = Blueprint("home", __name__)


@routes.get("/")
def page() -> str:
    return _shown("home.html")


@twins(routes, "/index", JSON_ALONE)
def twin() -> Twin:
    return Twin(_standing())


@routes.get("/standing")
def fragment() -> str:
    """The part of the home page that changes; `refresh.js` puts it in its place."""
    return _shown("standing.html")


def _standing() -> Json:
    """Return the tip, the blocks below it, and the heights of those that are damaged."""
    blocks = by_height(backend.get("/blocks", {"limit": RECENT_BLOCKS}))
    return {"tip": backend.get("/tip"), "blocks": blocks, "damaged": _damaged()}


def _damaged() -> list[int]:
    try:
        backend.get("/health/ready")
    except Refused as error:
        return list(error.damaged_blocks)
    return []


@routes.get("/strip")
def strip() -> str:
    """The newest blocks and the next one, as they fill; `refresh.js` puts them in their place."""
    return render_template("strip.html", **newest_blocks())


def newest_blocks() -> Json:
    """Return the tip, the blocks below it, oldest first, and whether another one is due."""
    tip, blocks = backend.get("/tip"), by_height(backend.get("/blocks", {"limit": STRIP_BLOCKS}))
    return {"tip": tip, "strip": blocks[::-1], "is_due": _is_due(tip, blocks)}


def _shown(template: str) -> str:
    standing = _standing()
    is_due = _is_due(standing["tip"], standing["blocks"])
    return render_template(template, **standing, is_due=is_due)


def _is_due(tip: Json, blocks: list[Json]) -> bool:
    """Return whether the miner's next round will seal a block.

    It does if something is pending. Without that it only does if it is set to seal empty blocks,
    and then the newest block tells: it is one.
    """
    newest = blocks[0] if blocks else {"height": 0}
    seals_empty_ones = newest["height"] > 0 and newest["transaction_count"] == 0
    return bool(tip["pending"]) or seals_empty_ones
