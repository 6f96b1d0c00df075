"""The home page, and the part of it that keeps itself up to date."""

from flask import Blueprint, render_template

from frontend.backend_client import Json, by_height
from frontend.context import backend
from frontend.errors import Refused
from frontend.twins import JSON_ALONE, Twin, twins

RECENT_BLOCKS, STRIP_BLOCKS = 6, 12

routes = Blueprint("home", __name__)


@routes.get("/")
def page() -> str:
    return render_template("home.html", **_standing())


@twins(routes, "/index", JSON_ALONE)
def twin() -> Twin:
    return Twin(_standing())


@routes.get("/standing")
def fragment() -> str:
    """Return the part of the home page that changes; `refresh.js` puts it in its place."""
    return render_template("standing.html", **_standing())


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
    """Return the newest blocks and the next one, which `refresh.js` puts in their place."""
    return render_template("strip.html", **newest_blocks())


def newest_blocks() -> Json:
    """Return the tip, and the blocks below it, oldest first."""
    blocks = by_height(backend.get("/blocks", {"limit": STRIP_BLOCKS}))
    return {"tip": backend.get("/tip"), "strip": blocks[::-1]}
