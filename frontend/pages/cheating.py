"""`/cheat`: attempts to cheat on a throw-away chain, and which check notices each of them."""

from typing import Any

from flask import Blueprint, render_template

from frontend.context import backend
from frontend.twins import JSON_ALONE, Twin, twins

TITLES = {
    "change-a-delay": "Change a delay",
    "mine-it-again": "… and mine the block again",
    "mine-all-again": "… and mine all blocks above it again",
    "sign-it-all": "… and sign the result with the log's key",
    "sign-with-a-new-key": "… or with a new key in its place",
    "delete-a-block": "Delete a block",
    "swap-two-blocks": "Swap two blocks",
    "roll-back": "Roll back",
    "roll-back-and-sign": "… and sign what is left with the log's key",
    "edit-the-index": "Edit the index",
    "sign-a-fork": "Sign a fork",
}


routes = Blueprint("cheating", __name__)


def _cheats() -> list[dict[str, Any]]:
    cheats: list[dict[str, Any]] = backend.get("/cheats")["cheats"]
    return [{"title": TITLES.get(cheat["name"], cheat["name"]), **cheat} for cheat in cheats]


@routes.get("/cheat")
def page() -> str:
    return render_template("cheat.html", cheats=_cheats())


@twins(routes, "/cheat", JSON_ALONE)
def twin() -> Twin:
    return Twin({"cheats": _cheats()})
