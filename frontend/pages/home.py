"""The home page, and the part of it that keeps itself up to date."""

from typing import Any

from flask import Blueprint, Response, render_template

from frontend.backend_client import Backend, Json
from frontend.tables import json_twin

RECENT_BLOCKS = 6


def blueprint(backend: Backend) -> Blueprint:
    """The page with the three questions and the newest blocks, its twin and its fragment."""
    routes = Blueprint("home", __name__)

    def standing() -> Json:
        """The tip and the blocks below it."""
        blocks = backend.get("/blocks", {"limit": RECENT_BLOCKS})["blocks"]
        return {"tip": backend.get("/tip"), "blocks": blocks}

    @routes.get("/")
    def home() -> str:
        """The three questions, and where the ledger stands."""
        return render_template("home.html", **standing())

    @routes.get("/index.json")
    def home_json() -> Response:
        """The twin of the home page."""
        return json_twin(standing())

    @routes.get("/standing")
    def fragment() -> str:
        """The part of the home page that changes; `refresh.js` puts it in its place."""
        found: dict[str, Any] = standing()
        return render_template("standing.html", **found)

    return routes
