"""`/cluster`: the machines that keep the ledger together, as those that can be asked see it."""

from flask import Blueprint, abort, render_template

from frontend.backend_client import Json
from frontend.context import backend
from frontend.twins import JSON_ALONE, Twin, twins

routes = Blueprint("cluster", __name__)


def _nodes() -> Json:
    """Return the cluster as the first node sees it that answers.

    Raises BackendAway, Refused if none answers.
    """
    tips = list(backend.tips())
    first = next((tip for _, tip, _ in tips if tip), None) or backend.get("/tip")
    nodes = [
        {
            "address": url,
            "tip": tip,
            "damaged": list(refusal.damaged_blocks) if refusal else [],
            "refusal": refusal.detail if refusal else "",
        }
        for url, tip, refusal in tips
    ]
    highest = max((tip["height"] for _, tip, _ in tips if tip), default=0)
    return {"cluster": first.get("cluster"), "height": highest, "nodes": nodes}


@routes.get("/cluster")
def page() -> str:
    return render_template("cluster.html", **_nodes())


@routes.get("/cluster/state")
def state() -> str:
    """Return the part of the page that changes; `refresh.js` puts it in its place."""
    nodes = _nodes()
    if not nodes["cluster"]:
        abort(404)
    return render_template("nodes.html", **nodes)


@twins(routes, "/cluster", JSON_ALONE)
def twin() -> Twin:
    return Twin(_nodes())
