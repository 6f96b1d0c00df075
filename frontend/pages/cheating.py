"""`/cheat`: attempts to cheat on a throw-away chain, and which check notices each of them."""

from typing import Any

from flask import Blueprint, render_template

from frontend.context import backend
from frontend.field_labels import TEXTS
from frontend.twins import JSON_ALONE, Twin, twins

routes = Blueprint("cheating", __name__)


def _cheats() -> list[dict[str, Any]]:
    cheats: list[dict[str, Any]] = backend.get("/cheats")["cheats"]
    return [
        {"title": TEXTS["cheats"].get(cheat["name"], cheat["name"]), **cheat} for cheat in cheats
    ]


@routes.get("/cheat")
def page() -> str:
    return render_template("cheat.html", cheats=_cheats())


@twins(routes, "/cheat", JSON_ALONE)
def twin() -> Twin:
    return Twin({"cheats": _cheats()})
